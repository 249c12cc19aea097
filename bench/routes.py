"""Every page and API call with a hundred thousand conversations, ten thousand documents and a million messages.

CPU time of the answering thread, in this process. What waits for a model is measured elsewhere. Each address is called
with a random ordinary conversation and document, with the endless conversation, and with real questions; first
read-only calls without accounts, then all of them as the owner of all conversations.
"""

import io
import logging
import random
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

from flask import Flask
from flask.testing import FlaskClient

from bench import crowd
from bench.crowd import Crowd
from bench.stage import application, open_database, wait_until_ready
from bench.words import common_words
from rag_assistant.services import Services
from tests.testkit.people import add_person, client_of, quick_passwords
from tests.testkit.routes import path_of, routes, send
from tests.testkit.stub_model import Reply, StubModel

CALLS = 3
SHOWN = 12
# What waits for a model or for another server.
WAITS = frozenset(
    "query query_stream ask retry regenerate chat_completions create_response embeddings compact test test_connection "
    "add_web_page fetch_again begin begin_link begin_with_invitation come_back mcp".split()
)
# What would end the session or change accounts, which doesn't depend on the amount of data.
OF_PEOPLE = ("account_pages.", "people_pages.")
# What processes everything by its nature: a file of everything, and a file or the erasure of the endless conversation.
OF_EVERYTHING = "archive_api.export"
OF_ALL_TURNS = frozenset(
    "conversations_api.export conversations_api.purge_conversation history_pages.purge sidebar.erase".split()
)
LONG = " (the long one)"
TYPED = ("/conversations?part=1&q=", "/api/conversations?q=", "/documents?q=", "/api/documents?q=")
TRIES_AS_TYPED = 5


@dataclass
class Found:
    """The milliseconds of each call, by name, and the refused calls."""

    ms: dict[str, list[float]] = field(default_factory=dict)
    refused: dict[str, int] = field(default_factory=dict)

    @property
    def slowest(self) -> list[tuple[float, str]]:
        """The median of each call, slowest first."""
        return sorted(((median(ms), what) for what, ms in self.ms.items()), reverse=True)


def main() -> None:
    """Print the slowest calls, and the slowest while typing."""
    logging.disable(logging.CRITICAL)
    stub = StubModel(Reply("Seen [1]."))
    with tempfile.TemporaryDirectory() as folder, quick_passwords():
        database = open_database(Path(folder) / "data")
        filled = crowd.fill(database)
        database.close()
        with application(Path(folder), stub) as (app, services):
            client = app.test_client()
            real = ask_some(client, services, filled)
            found, typed = Found(), Found()
            call_all(app, client, filled, real, found, "GET")
            type_words(client, typed, "")
            add_person(services, "Ann", "admin")
            signed_in = client_of(app, "Ann")
            type_words(signed_in, typed, ", signed in")
            call_all(app, signed_in, filled, real, found, "")
    stub.close()
    report(found, typed)


def ask_some(client: FlaskClient, services: Services, filled: Crowd) -> dict[str, Any]:
    """Ask questions in a new conversation and in the long one; return the resulting ids."""
    services.library.accept(io.BytesIO(b"The keeper of the lighthouse feeds seventeen geese at nine."), "geese.txt")
    wait_until_ready(services)

    def ask(**fields: Any) -> dict[str, Any]:
        response = client.post("/api/query", json={"question": "Which geese does the keeper feed?"} | fields)
        assert response.status_code == 200, response.text
        answer: dict[str, Any] = response.get_json()
        return answer

    first = ask()
    in_own, in_long = (ask(conversation_id=one) for one in (first["conversation_id"], filled.long))
    client.put(f"/api/turns/{in_own['turn_id']}/rating", json={"rating": "up"})
    client.post(f"/api/turns/{in_own['turn_id']}/regenerate")
    document = services.documents.page(1)[0].id
    others = dict.fromkeys(("library_id", "link_id", "session_id", "token_id", "person_id", "identity_id"), 1)
    return others | {
        "conversation_id": first["conversation_id"], "turn_id": in_own["turn_id"], "document_id": document,
        "long_turn": in_long["turn_id"], "secret": "none", "filename": "app.css", "path": "index",
    }  # fmt: skip


def call_all(app: Flask, client: FlaskClient, filled: Crowd, real: dict[str, Any], found: Found, only: str) -> None:
    """Call every route of a method, or of all of them."""
    for endpoint, method, rule in routes(app):
        name = endpoint.rpartition(".")[2]
        changes_people = method != "GET" and endpoint.startswith(OF_PEOPLE)
        if name in WAITS or changes_people or endpoint == OF_EVERYTHING or (only and method != only):
            continue
        for kind, ids in variants(filled, real, "_id>" in rule, method == "GET"):
            if kind == LONG and endpoint in OF_ALL_TURNS:
                continue
            what = f"{method} {rule}{kind}{'' if only else ', signed in'}"
            began = time.thread_time()
            response = send(client, endpoint, method, path_of(rule, ids))
            found.ms.setdefault(what, []).append((time.thread_time() - began) * 1000)
            if response.status_code >= 400:
                found.refused[what] = response.status_code


def variants(filled: Crowd, real: dict[str, Any], has_id: bool, reads: bool) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the ids with which a route is called, each with its label: another turn for each change."""
    chance = random.Random()
    for _ in range(CALLS):
        yield "", real | (filled.ordinary(chance) if has_id else {})
    if has_id:
        for _ in range(CALLS):
            yield " (what was asked)", real
        for _ in range(CALLS):
            turn_id = real["long_turn"] if reads else chance.choice(filled.long_turns)
            yield LONG, real | {"conversation_id": filled.long, "turn_id": turn_id}


def type_words(client: FlaskClient, found: Found, who: str) -> None:
    """Search as somebody typing two words, letter by letter, with other words each time."""
    chance = random.Random()
    for _ in range(TRIES_AS_TYPED):
        one, other = chance.sample(common_words(), 2)
        for path in TYPED:
            for typed in (*(one[:end] for end in range(1, len(one) + 1)), f"{one} {other[:2]}", f"{one} {other}"):
                letters = f"{len(typed)} letters" if " " not in typed else "two words"
                began = time.thread_time()
                response = client.get(path + typed.replace(" ", "+"), buffered=True)
                assert response.status_code == 200, response.text
                found.ms.setdefault(f"{path}, {letters}{who}", []).append((time.thread_time() - began) * 1000)


def report(found: Found, typed: Found) -> None:
    """Print the slowest reading, changing, and while-typing calls."""
    reads, changes = (
        [one for one in found.slowest if one[1].startswith("GET") == is_read] for is_read in (True, False)
    )
    print(f"CPU ms, the median of each of {len(found.ms)} calls ({len(found.refused)} refused), the slowest first.")
    for rows in (reads, changes, typed.slowest):
        print("\n| call | ms |\n|---|---|")
        for ms, what in rows[:SHOWN]:
            print(f"| `{what}` | {ms:.1f} |", flush=True)
