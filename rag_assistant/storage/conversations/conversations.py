"""Conversations: creating, listing, finding, renaming, deleting, restoring and erasing them."""

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from rag_assistant.records import (
    EVERYTHING,
    UNSET,
    Conversation,
    ConversationHit,
    ListedConversation,
    Project,
    Scope,
    Summary,
    Unset,
    errors,
)
from rag_assistant.storage.conversations.finding import find_conversations
from rag_assistant.storage.database import Database, Store, insert_row, lock, person_of, record_of, set_values
from rag_assistant.storage.full_text import TURN_WORDS
from rag_assistant.storage.ownership import OF_PERSON, own_conversations, owner_of_new, readable_project
from rag_assistant.storage.processes import is_nobodys
from rag_assistant.storage.tables import conversations, notes, now, projects, summaries, turns

MAX_TITLE_CHARS = 200
# All of them are shown, above the rest.
MAX_PINNED = 100

# Where a list continues: the time it is sorted by, then the id.
Cursor = tuple[datetime, int]
# A row as stored, or with other values.
Row = sa.RowMapping | Mapping[str, Any]

# The operation of an import; the conversation is hidden until it ends.
IMPORT = "import"
IS_WHOLE = sa.func.coalesce(conversations.c.operation["what"].as_string(), "") != IMPORT
# Versions of an edited question aren't listed as branches: one stands in the list for its origin.
_ORIGINS = conversations.alias("origins")
_IS_VERSION = sa.exists().where(_ORIGINS.c.id == conversations.c.origin_id, ~_ORIGINS.c.listed)
_BRANCHED_FROM = sa.case((_IS_VERSION, sa.null()), else_=conversations.c.branched_from)
_HEAD = tuple(conversations.c[name] for name in ("id", "title", "updated_at", "pinned"))
ENTRY = (*_HEAD, _BRANCHED_FROM.label("branched_from"), conversations.c.unread)
# Comes with each conversation, so that no query is needed where there are no notes.
_OWN_NOTES = notes.c.person_id.is_not_distinct_from(conversations.c.person_id), notes.c.active
HAS_NOTES = sa.exists().where(*_OWN_NOTES).label("has_notes")
# The conversation of a person, unless it is in the trash.
THIS = conversations.c.id == sa.bindparam("conversation"), conversations.c.deleted_at.is_(None), OF_PERSON
_LOAD = sa.select(conversations, HAS_NOTES).where(*THIS)
_LOAD_LOCKED = _LOAD.with_for_update(of=conversations)


class ConversationManager(Store):
    """Stores conversations; TurnStore stores their turns. ``owner`` names this process."""

    def __init__(self, database: Database, owner: str = "") -> None:
        super().__init__(database)
        self.owner = owner

    def create(self, title: str, project_id: int | None = None) -> Conversation:
        """Create an empty conversation. Raises ProjectNotFound."""
        with self._database.write() as connection:
            new_id = insert_conversation(connection, title, project_id=project_id)
            return conversation_of(connection, load_conversation(connection, new_id))

    def get(self, conversation_id: int) -> Conversation:
        """Return one conversation. Raises ConversationNotFound, also if it was deleted."""
        with self._database.read() as connection:
            return conversation_of(connection, load_conversation(connection, conversation_id))

    def open(self, conversation_id: int) -> Conversation:
        """Return one conversation as ``get`` does, and mark its answers as seen."""
        conversation = self.get(conversation_id)
        if conversation.unread:
            with self._database.write(forced=False) as connection:
                set_values(connection, conversations, conversation_id, {"unread": False})
        return conversation

    def page(
        self,
        limit: int,
        before: Cursor | None = None,
        *,
        pinned: bool | None = None,
        deleted: bool = False,
        archived: bool = False,
        project_id: int | None = None,
    ) -> list[Conversation]:
        """Return up to ``limit`` conversations after ``before``, most recently used (or deleted) first.

        With ``archived`` only archived ones, which are otherwise left out; with ``pinned`` only pinned or only unpinned
        ones; with ``project_id`` those of a project. A cursor is a time with an id, so that the list continues at the
        right place even if that conversation is used again.
        """
        with self._database.read() as connection:
            query = _list_of(connection, sa.select(conversations), before, pinned, deleted=deleted, archived=archived)
            if project_id is not None:
                in_it = conversations.c.project_id == project_id
                query = query.where(in_it, readable_project(connection, conversations.c.project_id))
            return _conversations_of(connection, connection.execute(query.limit(limit)).mappings().all())

    def entries(
        self,
        limit: int,
        before: Cursor | None = None,
        until: Cursor | None = None,
        *,
        pinned: bool,
        outside: Collection[int] = (),
    ) -> list[ListedConversation]:
        """Return up to ``limit`` list entries, as ``page`` does, but not past ``until``.

        Unpinned ones are left out if a program made them and they have no answer, or if they are in the projects
        ``outside``.
        """
        query = sa.select(*ENTRY) if pinned else sa.select(*ENTRY).where(conversations.c.listed)
        if until is not None:
            query = query.where(sa.tuple_(conversations.c.updated_at, conversations.c.id) >= sa.tuple_(*until))
        with self._database.read() as connection:
            query = _list_of(connection, query, before, pinned).limit(limit)
            if outside:
                query = query.where(sa.func.coalesce(conversations.c.project_id, 0).not_in(outside))
            return [ListedConversation(*row) for row in connection.execute(query)]

    def find(self, words: Sequence[str], limit: int, *, typing: bool = False) -> list[ConversationHit]:
        """Return up to ``limit`` conversations whose title or turns contain any of ``words``, best match first.

        While somebody is ``typing``, the last word may be a prefix.
        """
        if not words:
            return []
        with self._database.read() as connection:
            rows = find_conversations(connection, words, limit, typing)
            hits = _conversations_of(connection, [row for row, _, _ in rows])
            return [ConversationHit(one, turn, text) for one, (_, turn, text) in zip(hits, rows, strict=True)]

    def change(
        self,
        conversation_id: int,
        *,
        title: str | None = None,
        own: Mapping[str, Any] | None = None,
        pinned: bool | None = None,
        archived: bool | None = None,
        scope: Scope | None = None,
        project_id: int | Unset | None = UNSET,
    ) -> Conversation:
        """Rename, pin or archive a conversation, set its overrides (``own``) and scope, and return it.

        In ``own``, ``UNSET`` removes an override, so that its project or the settings apply again. With a
        ``project_id`` it moves there, with ``None`` out of any project. Raises ConversationNotFound, TooManyPinned,
        ProjectNotFound.
        """
        with self._database.write() as connection:
            row = load_conversation(connection, conversation_id)
            values: dict[str, Any] = {} if title is None else {"title": title}
            if pinned is not None:
                if pinned and not row["pinned"] and count_pinned(connection) >= MAX_PINNED:
                    raise errors.TooManyPinned(MAX_PINNED)
                values |= {"pinned": pinned} | ({"archived": False} if pinned else {})
            if archived is not None:
                values |= {"archived": archived} | ({"pinned": False} if archived else {})
            if scope is not None:
                values["scope"] = scope.as_dict()
            if own:
                values["overrides"] = with_own(row["overrides"], own)
            if not isinstance(project_id, Unset):
                values["project_id"] = usable_project(connection, project_id)
                moved = projects.c.id == project_id, projects.c.id != row["project_id"]
                rules = connection.execute(sa.select(projects.c.overrides).where(*moved)).scalar()
                if rules and "retention_days" in rules:
                    values["updated_at"] = now()  # It counts as used, so that it does not go to the trash at once.
            set_values(connection, conversations, conversation_id, values)
            return conversation_of(connection, load_conversation(connection, conversation_id))

    def show_operation(self, conversation_id: int, operation: Mapping[str, Any] | None) -> None:
        """Store the running operation of a conversation, so that every page can show its progress."""
        values = {"operation": operation, "operation_owner": self.owner}
        this = conversations.c.id == conversation_id, own_conversations(self._database)
        self._commit(sa.update(conversations).where(*this).values(values))

    def clear_operations(self) -> None:
        """Clear the operations of processes that died, and the conversations they imported in part."""
        left = conversations.c.operation.is_not(None) & is_nobodys(conversations.c.operation_owner)
        with self._database.write() as connection:
            drop_conversations(connection, left & ~IS_WHOLE)
            connection.execute(sa.update(conversations).where(left).values(operation=None))

    def delete(self, conversation_id: int) -> None:
        """Move a conversation to the trash. Raises ConversationNotFound."""
        with self._database.write() as connection:
            row = load_conversation(connection, conversation_id)
            set_values(connection, conversations, conversation_id, {"deleted_at": now()})
            list_again(connection, row["origin_id"])

    def restore(self, conversation_id: int, *, as_used: bool = False) -> Conversation:
        """Restore a deleted conversation; ``as_used`` counts as using it now. Raises ConversationNotFound."""
        values = {"updated_at": now()} if as_used else {}
        with self._database.write() as connection:
            this = conversations.c.id == conversation_id, own_conversations(connection), IS_WHOLE
            connection.execute(sa.update(conversations).where(*this).values(deleted_at=None, **values))
            return conversation_of(connection, load_conversation(connection, conversation_id))

    def unused_since(self, moment: datetime | None, in_projects: Mapping[int, datetime | None]) -> list[int]:
        """Return the unpinned conversations that nobody has used since a moment.

        ``in_projects`` overrides the moment for their owners' conversations in some projects; ``None`` means never. An
        older version, which isn't listed, stays as long as a newer one does.
        """
        branches = conversations.alias()
        has_newer = sa.exists().where(branches.c.origin_id == conversations.c.id, branches.c.deleted_at.is_(None))
        person = conversations.c.person_id
        of_owner = sa.select(projects.c.id).where(projects.c.person_id == person)
        mine = person.is_(None) | conversations.c.project_id.in_(of_owner)
        since: sa.ColumnElement[datetime] = sa.literal(moment, conversations.c.updated_at.type)
        for project_id, own in in_projects.items():
            here = mine & (conversations.c.project_id == project_id)
            since = sa.case((here, sa.literal(own, conversations.c.updated_at.type)), else_=since)
        old = conversations.c.updated_at < since, ~conversations.c.pinned, conversations.c.deleted_at.is_(None)
        at_rest = conversations.c.listed | ~has_newer, conversations.c.operation.is_(None)
        return self._values(sa.select(conversations.c.id).where(*old, *at_rest))

    def trashed_before(self, moment: datetime) -> list[int]:
        """Return the conversations moved to the trash before a moment."""
        return self._values(sa.select(conversations.c.id).where(conversations.c.deleted_at < moment))


def _list_of(
    connection: sa.Connection,
    query: sa.Select[Any],
    before: Cursor | None,
    pinned: bool | None,
    *,
    deleted: bool = False,
    archived: bool = False,
) -> sa.Select[Any]:
    """Return the query for a list after ``before``, most recently used or deleted first."""
    deleted_at = conversations.c.deleted_at
    moment = deleted_at if deleted else conversations.c.updated_at
    own = conversations.c.archived if archived else ~conversations.c.archived
    in_list = deleted_at.is_not(None) & IS_WHOLE if deleted else deleted_at.is_(None) & own
    query = query.where(in_list, own_conversations(connection, of_few=bool(pinned)))
    if pinned is not None:
        query = query.where(conversations.c.pinned if pinned else ~conversations.c.pinned)
    if before is not None:
        query = query.where(sa.tuple_(moment, conversations.c.id) < sa.tuple_(*before))
    return query.order_by(moment.desc(), conversations.c.id.desc())


def list_again(connection: sa.Connection, origin_id: int | None) -> None:
    """List the conversation that a deleted branch represented."""
    connection.execute(sa.update(conversations).where(conversations.c.id == origin_id).values(listed=True))


def drop_conversations(connection: sa.Connection, parts: sa.ColumnElement[bool]) -> None:
    """Delete conversations and the search index of their turns."""
    of_those = sa.select(turns.c.id).where(turns.c.conversation_id.in_(sa.select(conversations.c.id).where(parts)))
    TURN_WORDS.drop(connection, of_those)
    connection.execute(sa.delete(conversations).where(parts))


def insert_conversation(
    connection: sa.Connection,
    title: str,
    scope: Scope = EVERYTHING,
    *,
    listed: bool = False,
    project_id: int | None = None,
) -> int:
    """Insert an empty conversation with a scope and return its id. Raises ProjectNotFound."""
    moment = now()
    values = {
        "title": title[:MAX_TITLE_CHARS],
        "created_at": moment,
        "updated_at": moment,
        "person_id": owner_of_new(connection),
        "overrides": {},
        "scope": scope.as_dict(),
        "listed": listed,
        "project_id": usable_project(connection, project_id),
        **dict.fromkeys(("turns", "visible_turns", "visible_messages"), 0),
    }
    return insert_row(connection, conversations, values)


def usable_project(connection: sa.Connection, project_id: int | None) -> int | None:
    """Return the project for a conversation, locked against deletion. Raises ProjectNotFound."""
    if project_id is not None:
        query = sa.select(projects.c.id).where(projects.c.id == project_id, readable_project(connection, projects.c.id))
        if connection.execute(query.with_for_update(read=True, key_share=True)).first() is None:
            raise errors.ProjectNotFound(project_id)
    return project_id


def with_own(overrides: Mapping[str, Any], own: Mapping[str, Any]) -> dict[str, Any]:
    """Return overrides with changes applied; ``UNSET`` removes one."""
    return {name: value for name, value in {**overrides, **own}.items() if not isinstance(value, Unset)}


def load_conversation(connection: sa.Connection, conversation_id: int, *, lock: bool = False) -> Row:
    """Return a conversation's row, locked if asked. Raises ConversationNotFound or its subclass ConversationDeleted."""
    this = {"conversation": conversation_id, "person": person_of(connection)}
    row = connection.execute(_LOAD_LOCKED if lock else _LOAD, this).mappings().first()
    if row is None:
        raise not_found(connection, conversation_id)
    return row


def not_found(connection: sa.Connection, conversation_id: int) -> errors.ConversationNotFound:
    """Return the error for a conversation that isn't available."""
    this = conversations.c.id == conversation_id, own_conversations(connection)
    if connection.execute(sa.select(conversations.c.id).where(*this)).first() is None:
        return errors.ConversationNotFound(conversation_id)
    return errors.ConversationDeleted(conversation_id, details={"conversation_id": conversation_id})


def refuse_while_running(connection: sa.Connection, row: Row, running: int | None = None) -> None:
    """Raise ConversationBusy if a turn other than number ``running`` is running."""
    query = sa.select(turns.c.number).where(turns.c.conversation_id == row["id"], turns.c.status == "running")
    if connection.execute(query).scalar() not in (None, running):
        raise errors.ConversationBusy(row["id"])


def conversation_of(connection: sa.Connection, row: Row) -> Conversation:
    return _conversations_of(connection, [row])[0]


def _conversations_of(connection: sa.Connection, rows: Sequence[Row]) -> list[Conversation]:
    """Return the records of rows, in order; their summaries, and usable projects, are read in one query each."""
    summary_ids = [row["summary_id"] for row in rows if row["summary_id"] is not None]
    summary_of: dict[int, Summary] = {}
    if summary_ids:
        rows_of_summaries = connection.execute(sa.select(summaries).where(summaries.c.id.in_(summary_ids))).mappings()
        summary_of = {row["id"]: record_of(row, Summary) for row in rows_of_summaries}
    project_of: dict[int, Project] = {}
    if project_ids := {row["project_id"] for row in rows} - {None}:
        usable = projects.c.id.in_(project_ids), readable_project(connection, projects.c.id)
        for row in connection.execute(sa.select(projects).where(*usable)).mappings():
            own = {"retention_days": own_retention(connection, row["person_id"], row["overrides"])}
            project_of[row["id"]] = record_of(with_rules(row) | own, Project)
    more = [
        {"summary": summary_of.get(row["summary_id"]), "project": project_of.get(row["project_id"])} for row in rows
    ]
    return [record_of(with_rules(row) | own, Conversation) for row, own in zip(rows, more, strict=True)]


def with_rules(row: Row) -> dict[str, Any]:
    """Return the row of a conversation or project with its overrides as columns."""
    return {**row, **row["overrides"], "scope": row["scope"] or {}}


def own_retention(connection: sa.Connection, owner: int | None, overrides: Mapping[str, Any]) -> int | Unset | None:
    """Return a project's ``retention_days``; UNSET for others than its owner, whose conversations it does not touch."""
    is_own = person_of(connection) in (None, owner)
    return overrides.get("retention_days", UNSET) if is_own else UNSET


def count_pinned(connection: sa.Connection) -> int:
    """Return the number of pinned conversations, locked against others who pin."""
    lock(connection, f"pinned by {person_of(connection)}")
    own = own_conversations(connection, of_few=True)
    pinned = sa.select(conversations.c.id).where(conversations.c.pinned, conversations.c.deleted_at.is_(None), own)
    # In list order; otherwise SQLite starts with all that aren't deleted.
    return len(connection.execute(pinned.order_by(conversations.c.updated_at.desc()).limit(MAX_PINNED)).all())
