"""Projects: shared or not, what holds in their conversations, and what is left when they go."""

from collections.abc import Callable
from typing import Any
from unittest.mock import Mock

import pytest

from rag_assistant.conversations.window import rules_for
from rag_assistant.records import EVERYTHING, UNSET, Project, Question, Scope
from rag_assistant.records.errors import NotInProject, NotProjectOwner, ProjectNotFound, TooManyOwned
from rag_assistant.settings.schema import Settings
from rag_assistant.storage.accounts import libraries as shared
from rag_assistant.storage.accounts.libraries import LibraryStore
from rag_assistant.storage.accounts.people import PeopleStore
from rag_assistant.storage.conversations.projects import ProjectStore
from rag_assistant.storage.database import Database, record_of
from rag_assistant.storage.grids import GridStore
from tests.conftest import both_engines
from tests.storage.test_ownership import Desk


class Room(Desk):
    """The stores of one person, with their projects."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.projects = ProjectStore(self.database.for_person(self.person.id))


@pytest.fixture
def rooms(database: Database) -> tuple[Room, Room]:
    """Ann's and Ben's."""
    ann, ben = (Room(PeopleStore(database).add(name, "member", None), database) for name in ("Ann", "Ben"))
    return ann, ben


def test_a_shared_project_is_used_changed_and_shared_only_as_was_said(rooms: tuple[Room, Room]) -> None:
    ann, ben = rooms
    project = ann.projects.add("Harbour", "Speak of boats.", Scope(tags=("sea",)), {"max_history_turns": 3})
    assert (project.mine, project.owner, project.scope.tags) == (True, "Ann", ("sea",))
    uses: list[Callable[[int], Any]] = [
        lambda n: ben.projects.get(n),
        lambda n: ben.projects.change(n, {"name": "x"}),
        lambda n: ben.projects.share(n, "Ben", "write"),
        lambda n: ben.projects.delete(n),
        lambda n: ben.conversations.create("x", n),
        lambda n: ben.turns.accept(Question("Why?", project_id=n), "Why?"),
        lambda n: ben.conversations.change(ben.conversations.create("x").id, project_id=n),
    ]
    for use in uses:
        with pytest.raises(ProjectNotFound, match=str(project.id)):
            use(project.id)
    ann.projects.share(project.id, "ben", "read")
    read = ben.projects.get(project.id)
    assert (read.mine, read.writable, read.shares, read.instructions) == (False, False, (), "Speak of boats.")
    with pytest.raises(NotProjectOwner):
        ben.projects.change(project.id, {"name": "x"})
    own = ben.conversations.create("Ben's", project.id)
    assert own.project is not None
    assert own.project.instructions == "Speak of boats."
    assert ann.projects.get(project.id).conversations == 0, "conversations stay their owner's"
    ann.projects.share(project.id, "ben", "write")
    changed = ben.projects.change(project.id, {"name": "Port"}, own={"on_overflow": "ask", "max_history_turns": UNSET})
    assert (changed.name, changed.on_overflow, changed.max_history_turns) == ("Port", "ask", UNSET)
    for refused in (
        lambda: ben.projects.change(project.id, {"everyone": "read"}),
        lambda: ben.projects.share(project.id, "Ann", "read"),
        lambda: ben.projects.delete(project.id),
    ):
        with pytest.raises(NotProjectOwner):
            refused()
    ann.projects.share(project.id, "ben", None)
    assert ben.conversations.get(own.id).project is None
    assert ben.projects.all() == []


@both_engines
def test_one_item_is_read_without_all_others(rooms: tuple[Room, Room], monkeypatch: pytest.MonkeyPatch) -> None:
    ann = rooms[0]
    stores = ann.projects, LibraryStore(ann.database.for_person(ann.person.id))
    made = [(store, store.add(name)) for store in stores for name in ("Harbour", "Farm")]
    reading = Mock(side_effect=record_of)
    monkeypatch.setattr(shared, "record_of", reading)
    for store, one in made:
        assert store.get(one.id) == one
    assert reading.call_count == len(made)


def test_a_person_has_only_so_many_of_each(rooms: tuple[Room, Room], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shared, "MAX_OWNED", 2)
    ann, ben = (room.database.for_person(room.person.id) for room in rooms)
    adding: tuple[Callable[[Database, str], Any], ...] = (
        lambda bound, name: LibraryStore(bound).add(name),
        lambda bound, name: ProjectStore(bound).add(name),
        lambda bound, name: GridStore(bound).add(
            {"name": name, "columns": [{"id": 0, "question": "Rent?", "name": "", "type": "text"}], "watch": False}
        ),
    )
    for add in adding:
        with pytest.raises(TooManyOwned, match="You have 2 of these"):
            for name in "abc":
                add(ann, name)
        assert add(ben, "a").name == "a"
    (table, other) = GridStore(ann).all()
    GridStore(ann).trash(table.id)
    with pytest.raises(TooManyOwned, match="trash"):
        adding[2](ann, "c")
    GridStore(ann).erase(table.id)
    assert adding[2](ann, "c").id != other.id


def test_deleting_a_project_leaves_everybodys_conversations(rooms: tuple[Room, Room]) -> None:
    ann, ben = rooms
    project = ann.projects.add("Harbour", own={"max_history_turns": 3})
    ann.projects.change(project.id, {"everyone": "read"})
    made = [one.conversations.create("In it", project.id) for one in (ann, ben)]
    assert [one.projects.get(project.id).conversations for one in (ann, ben)] == [1, 1]
    ann.projects.delete(project.id)
    left = [one.conversations.get(there.id) for one, there in zip((ann, ben), made, strict=True)]
    assert [(one.title, one.project) for one in left] == [("In it", None)] * 2


def test_what_is_asked_in_a_project_takes_its_documents_where_nothing_nearer_says_which(
    rooms: tuple[Room, Room],
) -> None:
    ann, _ = rooms
    project = ann.projects.add("Harbour", scope=Scope(tags=("sea",)))
    turn, conversation = ann.turns.accept(Question("Why?", project_id=project.id), "Why?")
    assert conversation is not None
    assert (turn.scope, conversation.scope) == (Scope(tags=("sea",)), EVERYTHING)
    ann.turns.finish(turn, "completed", "So.")
    ann.conversations.change(conversation.id, scope=Scope(tags=("land",)))
    turn, _ = ann.turns.accept(Question("And?", conversation.id), "And?")
    assert turn.scope.tags == ("land",)
    ann.turns.finish(turn, "completed", "So.")
    turn, _ = ann.turns.accept(Question("And?", conversation.id, scope=EVERYTHING, project_id=project.id), "And?")
    assert turn.scope == EVERYTHING
    ann.turns.finish(turn, "completed", "So.")
    branch, _ = ann.turns.accept(Question("Or?", edits_turn=turn.id), "Or?")
    assert ann.conversations.get(branch.conversation_id).project_id == project.id
    ann.conversations.change(conversation.id, project_id=None)
    with pytest.raises(NotInProject):
        ann.turns.accept(Question("And?", conversation.id, project_id=project.id), "And?")


def test_the_nearest_word_holds_of_request_conversation_project_and_settings(rooms: tuple[Room, Room]) -> None:
    ann, _ = rooms
    settings = Settings(max_history_turns=7, history_strategy="window", on_overflow="trim")
    project = ann.projects.add("Harbour", own={"max_history_turns": None, "on_overflow": "ask"})
    turn, conversation = ann.turns.accept(Question("Why?", project_id=project.id), "Why?")
    assert conversation is not None
    rules = rules_for(conversation, settings, turn)
    assert (rules.max_history_turns, rules.strategy, rules.on_overflow) == (None, "window", "ask")
    own = ann.conversations.change(conversation.id, own={"max_history_turns": 2, "history_strategy": "smart"})
    rules = rules_for(own, settings, turn)
    assert (rules.max_history_turns, rules.strategy, rules.on_overflow) == (2, "smart", "ask")
    ann.turns.finish(turn, "completed", "So.")
    asked, _ = ann.turns.accept(Question("And?", own.id, max_history_turns=0, on_overflow="reset"), "And?")
    rules = rules_for(own, settings, asked)
    assert (rules.max_history_turns, rules.strategy, rules.on_overflow) == (0, "smart", "reset")


def test_the_first_account_gets_the_projects_that_were_there_and_they_are_handed_over(database: Database) -> None:
    made: Project = ProjectStore(database).add("Before", own={"retention_days": 1, "max_history_turns": 2})
    assert made.mine
    people = PeopleStore(database)
    ann, ben = (Room(people.add(name, "member", None), database) for name in ("Ann", "Ben"))
    assert ann.projects.get(made.id).mine
    people.hand_over(ann.person.id, ben.person.id)
    assert (ann.projects.all(), [one.name for one in ben.projects.all()]) == ([], ["Before"])
    # It would move conversations of Ben's to the trash.
    assert (ben.projects.get(made.id).retention_days, ben.projects.get(made.id).max_history_turns) == (UNSET, 2)
    people.change(ben.person.id, {"role": "admin"})
    people.delete(ann.person.id)
    ann_again = Room(people.add("Ann", "member", None), database)
    ann_again.projects.add("After")
    people.delete(ann_again.person.id)
    assert [one.name for one in ben.projects.all()] == ["Before"]
