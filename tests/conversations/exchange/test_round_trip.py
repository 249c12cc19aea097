"""What is exported is read back identically."""

import io
import shutil
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from rag_assistant.conversations.exchange.archive import MAX_INT64, line_of
from rag_assistant.conversations.exchange.files import read_export, write_archive
from rag_assistant.conversations.exchange.importing import Outcome, import_conversations
from rag_assistant.conversations.exchange.products import Export
from rag_assistant.records import NO_DOCUMENT, Rating, Scope, Source, runs_of
from rag_assistant.records.archive import WholeAnswer, WholeConversation, WholeSummary, WholeTurn
from rag_assistant.records.errors import InvalidRequest
from rag_assistant.storage.conversations.conversations import load_conversation
from rag_assistant.storage.conversations.exchange import ExchangeStore
from rag_assistant.storage.conversations.notes import NoteStore
from rag_assistant.storage.database import Database, sqlite_url
from rag_assistant.storage.documents.documents import DocumentStore

LIMIT = 10_000_000
TEXTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=40)
SAID = TEXTS.filter(str.strip)
MOMENTS = st.datetimes(datetime(2000, 1, 1), datetime(2040, 1, 1), timezones=st.just(UTC))
NUMBERS = st.integers(1, 9)
# Documents that are in no archive have an id of their own after an import.
SOURCES = st.builds(
    Source,
    n=NUMBERS,
    document_id=st.just(NO_DOCUMENT),
    document=SAID,
    page=st.none() | NUMBERS,
    start=NUMBERS,
    end=NUMBERS,
    text=TEXTS | st.just("A passage that is long enough to be kept apart. " * 9),
    score=st.floats(0, 1),
    cited=st.booleans(),
)
REQUESTS: tuple[dict[str, Any], ...] = {}, {"max_history_turns": None}, {"document_ids": [NO_DOCUMENT], "tags": ["sea"]}
FIGURES = st.none() | st.dictionaries(TEXTS, st.integers(-MAX_INT64, MAX_INT64) | TEXTS, max_size=2)


@st.composite
def answers(draw: Any) -> WholeAnswer:
    call = {"id": "c", "type": "function", "function": {"name": "search", "arguments": draw(TEXTS)}}
    calls = ({"role": "assistant", "content": None, "tool_calls": [call]}, {"role": "tool", "content": draw(TEXTS)})
    text = draw(SAID)
    return WholeAnswer(
        messages=(*(calls if draw(st.booleans()) else ()), {"role": "assistant", "content": text}),
        status=draw(st.sampled_from(("completed", "stopped", "interrupted"))),
        finished_at=draw(st.none() | MOMENTS),
        model=draw(st.none() | TEXTS),
        sources=tuple(draw(st.lists(SOURCES, max_size=2))),
        usage=draw(FIGURES),
        notes=tuple(draw(st.lists(TEXTS, max_size=2))),
        error_type=draw(st.none() | TEXTS),
        error_message=draw(st.none() | TEXTS),
    )


@st.composite
def turns(draw: Any) -> WholeTurn:
    if draw(st.integers(0, 9)) == 0:
        moment = draw(MOMENTS)
        return WholeTurn("", WholeAnswer(status="erased"), moment, erased_at=moment)
    rating = st.builds(
        Rating, st.sampled_from(("up", "down")), version=st.just(1), rated_at=MOMENTS, right_answer=st.none() | TEXTS
    )
    mark = draw(st.sampled_from(("", "pinned", "excluded")))
    others = {1: draw(answers())} if draw(st.booleans()) else {}
    return WholeTurn(
        question=draw(SAID),
        answer=draw(answers()),
        created_at=draw(MOMENTS),
        request=draw(
            st.sampled_from(({}, {"max_history_turns": None}, {"document_ids": [NO_DOCUMENT], "tags": ["sea"]}))
        ),
        pinned=mark == "pinned",
        excluded=mark == "excluded",
        purged=draw(st.booleans()),
        version=1 + len(others),
        others=others,
        rating=draw(st.none() | rating),
    )


@st.composite
def libraries(draw: Any) -> list[WholeConversation]:
    made: list[WholeConversation] = []
    first = draw(MOMENTS)
    for number in range(1, draw(st.integers(1, 3)) + 1):
        said = tuple(draw(st.lists(turns(), min_size=1, max_size=4)))
        context_start = draw(st.integers(1, len(said) + 1))
        view_start = draw(st.integers(context_start, len(said) + 1))
        covered = [
            (first, last) for first, last in runs_of(n for n in range(context_start, view_start) if draw(st.booleans()))
        ]
        made.append(
            WholeConversation(
                id=number,
                title=draw(SAID),
                created_at=first + timedelta(microseconds=number),
                updated_at=draw(MOMENTS),
                turns=said,
                key=draw(st.sampled_from((None, f"import:{number}"))),
                branched_from=(draw(st.integers(1, number - 1)), draw(NUMBERS)) if draw(NUMBERS) > 5 < number else None,
                pinned=draw(st.booleans()),
                archived=draw(st.booleans()),
                overrides=draw(st.sampled_from(({}, {"max_history_turns": 3, "on_overflow": "ask"}))),
                scope=Scope((), tuple(draw(st.lists(SAID, max_size=1)))),
                context_start=context_start,
                view_start=view_start,
                decided_until=draw(NUMBERS),
                summary=draw(st.builds(WholeSummary, st.just(covered), SAID, TEXTS, MOMENTS)) if covered else None,
            )
        )
    return made


def opened(migrated: Path, folder: Path) -> tuple[Database, ExchangeStore]:
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(migrated, folder)
    return over(Database(sqlite_url(folder)))


def over(database: Database) -> tuple[Database, ExchangeStore]:
    return database, ExchangeStore(database, "tests", str.lower)


def imported(export: Export, database: Database, store: ExchangeStore) -> list[Outcome]:
    return import_conversations(export, store, DocumentStore(database, "tests"), NoteStore(database), None)[0]


def lines(store: ExchangeStore) -> list[str]:
    return [line_of(store.read(one)) for one in store.ids()]


@settings(max_examples=5, deadline=None, suppress_health_check=list(HealthCheck))
@given(library=libraries())
def test_an_archive_is_read_back_identically(library: list[WholeConversation], tmp_path: Path, migrated: Path) -> None:
    database, store = opened(migrated, tmp_path / "there")
    try:
        for one in library:
            store.insert(one)
        assert lines(store) == [line_of(one) for one in library]
        (tmp_path / "one.zip").unlink(missing_ok=True)
        write_archive(tmp_path / "one.zip", [], (store.read(one) for one in store.ids()))
        with (tmp_path / "one.zip").open("rb") as file:
            export = read_export(file, LIMIT)
        assert not any(one.new for one in imported(export, database, store)), "all of it is here already"
        elsewhere, other = opened(migrated, tmp_path / "elsewhere")
        try:
            assert all(one.new for one in imported(export, elsewhere, other))
            assert lines(other) == lines(store)
        finally:
            elsewhere.close()
    finally:
        database.close()


def conversation(**more: Any) -> WholeConversation:
    moment = datetime(2024, 5, 1, tzinfo=UTC)
    turn = WholeTurn("Why?", WholeAnswer(({"role": "assistant", "content": "So."},), finished_at=moment), moment)
    return replace(WholeConversation(1, "Why", moment, moment, (turn,)), **more)


@pytest.mark.parametrize(
    "change",
    [{"request": {"options": {"nonsense": 1}}}, {"answer": WholeAnswer(history={"nonsense": 1})}],
)
def test_a_conversation_is_inserted_whole_or_not_at_all(database: Database, change: dict[str, Any]) -> None:
    _, store = over(database)
    wrong = replace(conversation().turns[0], **change)
    with pytest.raises(InvalidRequest, match='"Why" has values that an export never contains'):
        store.insert(conversation(turns=(wrong,)))
    assert store.ids() == []
    store.insert(conversation(key="import:1"))
    with pytest.raises(InvalidRequest, match='"Why" was imported a moment ago'):
        store.insert(conversation(key="import:1"))
    assert [store.read(one).title for one in store.ids()] == ["Why"]


def test_of_an_erased_turn_the_model_sees_nothing_whatever_an_archive_says(tmp_path: Path, migrated: Path) -> None:
    database, store = opened(migrated, tmp_path / "here")
    whole = conversation()
    made = store.insert(replace(whole, turns=(replace(whole.turns[0], erased_at=whole.created_at),)))
    with closing(database), database.read() as connection:
        row = load_conversation(connection, made)
    assert (row["visible_turns"], row["visible_messages"]) == (0, 0)


def test_a_file_that_unpacks_to_too_much_is_refused(tmp_path: Path) -> None:
    write_archive(tmp_path / "one.zip", [], [conversation(title="x" * 100_000)])
    with pytest.raises(Exception, match="more than 0 MB, the most allowed"):
        read_export(io.BytesIO((tmp_path / "one.zip").read_bytes()), 10_000)
