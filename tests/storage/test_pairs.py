"""What may happen once, or must leave one, when two do it at the same moment.

Without the lock that a test is about, it has failed within 9 pairs each time.
"""

import os
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from sqlalchemy import delete, insert, update

from rag_assistant.records import ExternalIdentity, NewDocument
from rag_assistant.records.errors import (
    AccountsExist,
    AssistantError,
    LastAdmin,
    LastWayIn,
    LibraryInUse,
    LimitReached,
    LinkOver,
    StorageLimitReached,
    TooManyPinned,
)
from rag_assistant.storage.accounts import credentials
from rag_assistant.storage.accounts.credentials import ConversationLinkStore, CredentialStore, LinkedIdentityStore
from rag_assistant.storage.accounts.libraries import LibraryStore
from rag_assistant.storage.accounts.people import PeopleStore
from rag_assistant.storage.accounts.usage import UsageStore
from rag_assistant.storage.conversations import conversations as conversation_store
from rag_assistant.storage.conversations.conversations import ConversationManager
from rag_assistant.storage.database import Database
from rag_assistant.storage.documents.documents import DocumentStore
from rag_assistant.storage.processes import Leases
from rag_assistant.storage.tables import (
    asked_questions,
    conversations,
    documents,
    libraries,
    linked_identities,
    people,
    sessions,
)
from tests.conftest import both_engines

PAIRS = int(os.environ.get("PAIRS", "20"))
DAY = timedelta(days=1)


def at_once(*both: Callable[[], Any]) -> list[Any]:
    """Do two things at the same moment, and return what came of them: values or errors of ours."""
    start = threading.Barrier(len(both))

    def do(one: Callable[[], Any]) -> Any:
        start.wait()
        try:
            return one()
        except AssistantError as error:
            return error

    with ThreadPoolExecutor(len(both)) as pool:
        return list(pool.map(do, both))


def refused(outcomes: list[Any], kind: type[Exception]) -> int:
    return sum(isinstance(one, kind) for one in outcomes)


@pytest.mark.parametrize("way", ["demote", "disable"])
def test_one_of_two_administrators_stays(database: Database, way: str) -> None:
    store = PeopleStore(database)
    ada, bob = (store.add(name, "admin", None) for name in ("Ada", "Bob"))
    for _ in range(PAIRS):
        with database.write() as connection:
            connection.execute(update(people).values(role="admin", disabled_at=None))
        other = (
            (lambda: store.change(bob.id, {"role": "member"}))
            if way == "demote"
            else (lambda: store.change(bob.id, {"disabled_at": datetime.now(UTC)}))
        )
        assert refused(at_once(lambda: store.change(ada.id, {"role": "member"}), other), LastAdmin) == 1


@pytest.mark.long
def test_one_of_two_administrators_stays_who_are_deleted(database: Database) -> None:
    store = PeopleStore(database)
    store.add("Zoe", "admin", None)
    for n in range(PAIRS):
        with database.write() as connection:
            connection.execute(update(people).values(role="member"))
        pair = [store.add(f"{name} {n}", "admin", None) for name in ("Ada", "Bob")]
        assert refused(at_once(*(lambda one=one: store.delete(one.id) for one in pair)), LastAdmin) == 1


def test_one_of_two_is_the_first_account(database: Database) -> None:
    store = PeopleStore(database)
    for _ in range(PAIRS):
        with database.write() as connection:
            connection.execute(delete(libraries).where(libraries.c.person_id.is_not(None)))
            connection.execute(delete(people))
        makes = (lambda name=name: store.add(name, "admin", None, only_first=True) for name in ("Ada", "Bob"))
        assert refused(at_once(*makes), AccountsExist) == 1


@pytest.mark.long
def test_one_of_two_ways_to_sign_in_stays(database: Database) -> None:
    ada = PeopleStore(database).add("Ada", "admin", None)
    store = LinkedIdentityStore(database)
    for _ in range(PAIRS):
        with database.write() as connection:
            connection.execute(delete(linked_identities))
        pair = [store.add(ada.id, ExternalIdentity("https://issuer", subject, subject)) for subject in "ab"]
        removals = (lambda one=one: store.remove(ada.id, one.id, None) for one in pair)
        assert refused(at_once(*removals), LastWayIn) == 1


def test_a_link_is_used_once(database: Database) -> None:
    ada = PeopleStore(database).add("Ada", "admin", None)
    store = CredentialStore(database)
    for n in range(PAIRS):
        store.make_link(ada.id, f"secret {n}", DAY)
        uses = (lambda name=name: store.use_link(f"secret {n}", name) for name in "ab")  # noqa: B023 - used at once
        assert refused(at_once(*uses), LinkOver) == 1


def test_a_link_is_used_once_for_accounts_elsewhere(database: Database) -> None:
    ada = PeopleStore(database).add("Ada", "admin", None)
    links, store = CredentialStore(database), LinkedIdentityStore(database)
    for n in range(PAIRS):
        links.make_link(ada.id, f"secret {n}", DAY)
        pair = [ExternalIdentity("https://issuer", f"{subject} {n}", subject) for subject in "ab"]
        uses = (lambda one=one: store.add(ada.id, one, f"secret {n}") for one in pair)  # noqa: B023 - used at once
        assert refused(at_once(*uses), LinkOver) == 1


@both_engines
def test_one_of_two_links_is_good(database: Database) -> None:
    ada = PeopleStore(database).add("Ada", "admin", None)
    store = CredentialStore(database)
    for _ in range(PAIRS):
        at_once(*(lambda secret=secret: store.make_link(ada.id, secret, DAY) for secret in ("one", "two")))
        looks = (lambda secret=secret: store.link(secret) for secret in ("one", "two"))
        assert refused(at_once(*looks), LinkOver) == 1


@pytest.mark.long
def test_a_person_has_one_link_to_a_conversation(database: Database) -> None:
    ada, bob = (PeopleStore(database).add(name, "member", None) for name in ("Ada", "Bob"))
    own = database.for_person(ada.id)
    store, shared = ConversationLinkStore(own), ConversationManager(own).create("Geese")
    for n in range(PAIRS):
        makes = (lambda name=name: store.make(shared.id, f"{name} {n}", False, "bob") for name in "ab")  # noqa: B023
        assert {one.person for one in at_once(*makes)} == {bob.name}
        assert [one.person for one in store.of(shared.id)] == [bob.name]


@pytest.mark.long
def test_one_of_two_libraries_stays(database: Database) -> None:
    ada = PeopleStore(database).add("Ada", "admin", None)
    store = LibraryStore(database.for_person(ada.id))
    store.add("First")
    for _ in range(PAIRS):
        with database.write() as connection:
            connection.execute(delete(libraries))
            connection.execute(insert(libraries), [{"name": name, "person_id": ada.id} for name in "ab"])
        removals = (lambda one=one: store.delete(one.id) for one in store.all())
        assert refused(at_once(*removals), LibraryInUse) == 1


def test_no_more_are_pinned_than_may_be(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(conversation_store, "MAX_PINNED", 1)
    store = ConversationManager(database)
    pair = [store.create("Geese"), store.create("Boats")]
    for _ in range(PAIRS):
        with database.write() as connection:
            connection.execute(update(conversations).values(pinned=False))
        pins = (lambda one=one: store.change(one.id, pinned=True) for one in pair)
        assert refused(at_once(*pins), TooManyPinned) == 1


@pytest.mark.long
@pytest.mark.parametrize("limits", [(1, None), (None, 1)], ids=["at once", "per minute"])
def test_no_more_is_asked_than_may_be(database: Database, limits: tuple[int | None, int | None]) -> None:
    process, other = (Leases(database, name, dict).enter("command") for name in "ab")
    store = UsageStore(database)
    for _ in range(PAIRS):
        with database.write() as connection:
            connection.execute(delete(asked_questions))
        asks = (lambda one=one: store.take_question(1, one, *limits) for one in (process, other))
        assert refused(at_once(*asks), LimitReached) == 1


def test_no_more_is_stored_than_may_be(database: Database) -> None:
    ada = PeopleStore(database).add("Ada", "admin", None)
    LibraryStore(database.for_person(ada.id)).add("First")
    store = DocumentStore(database.for_person(ada.id), "here")
    for n in range(PAIRS):
        with database.write() as connection:
            connection.execute(delete(documents))
        pair = [NewDocument(letter, "text/plain", 6, f"{letter}{n}", f"{letter}{n}") for letter in "ab"]
        assert refused(at_once(*(lambda one=one: store.add(one, 10) for one in pair)), StorageLimitReached) == 1


@pytest.mark.long
def test_no_more_sessions_are_open_than_may_be(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(credentials, "MAX_SESSIONS", 1)
    ada = PeopleStore(database).add("Ada", "admin", None)
    store = CredentialStore(database)
    for n in range(PAIRS):
        with database.write() as connection:
            connection.execute(delete(sessions))
        here = {"address": "", "browser": ""}
        starts = (lambda name=name: store.start_session(ada.id, f"{name} {n}", DAY, **here) for name in "ab")  # noqa: B023 - used at once
        at_once(*starts)
        assert len(store.sessions_of(ada.id)) == 1
