"""Every route, every method, every kind of caller, with ids of somebody else: what is not yours does not exist.

The routes come from the application. A route with an id that nobody here knows how to fill fails, and so does one
without a policy.
"""

import io
import re
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from statistics import median
from typing import Any

import pytest
from flask import Flask
from flask.testing import FlaskClient
from sqlalchemy import MetaData, select
from werkzeug.test import TestResponse

from rag_assistant.factory import create_app
from rag_assistant.records import ABILITIES, ExternalIdentity
from rag_assistant.storage.accounts.identities import LinkedIdentityStore
from rag_assistant.web.policy import POLICIES
from rag_assistant.web.services import Services
from testkit.people import ACTOR, add_person, client_of, quick_passwords, token_client
from testkit.stub_model import StubModel
from tests.web.conftest import ask, upload

MISSING = 999_999
CANARY = "zebracanary"
TAG = f"{CANARY}tag"
MODEL = "rag-assistant"
CHAT: dict[str, Any] = {"model": MODEL, "messages": [{"role": "user", "content": "Why?"}]}
# What answers everybody: these are asked about elsewhere.
STATIC = ("static", "versioned_static")

# What has no id of its own, or one that is only there once something was cited.
LED_BY_A_SECRET = ("source_pages.source", "shared_pages.shared", "sharing_api.shared")

# What a route is sent, so that it gets as far as looking for what it names.
JSON_BODIES: dict[str, dict[str, Any]] = {
    "conversations_api.change_conversation": {"title": "Seized"},
    "conversations_api.edit_summary": {"text": "Seized."},
    "conversations_api.command": {"command": "/history"},
    "api.change_turn": {"pinned": True},
    "ratings_api.rate": {"rating": "down"},
    "documents_api.change": {"name": "seized.txt"},
    "documents_api.add_web_page": {"url": "http://127.0.0.1/"},
    "libraries_api.add": {"name": "Seized"},
    "libraries_api.change": {"everyone": "write"},
    "libraries_api.share": {"person": "Cat", "access": "write"},
    "sharing_api.make": {"with_sources": True},
    "api.query": {"question": "Why?"},
    "api.query_stream": {"question": "Why?"},
    "openai.chat_completions": CHAT,
    "openai.embeddings": {"model": "rag-assistant-embeddings", "input": ["Why?"]},
    "openai.create_response": {"model": MODEL, "input": "Why?"},
    "mcp.mcp": {"jsonrpc": "2.0", "id": 1, "method": "tools/list"},
    "openai.compact": {"model": MODEL, "input": CHAT["messages"]},
}
FORMS: dict[str, dict[str, Any]] = {
    "pages.ask": {"question": "Why?"},
    "pages.rename": {"title": "Seized"},
    "pages.choices": {"on_overflow": "trim"},
    "pages.choose_version": {"version": "1"},
    "history_pages.edit_summary": {"text": "Seized."},
    "history_pages.mark": {"pinned": "true"},
    "rating_pages.rate": {"rating": "down"},
    "document_pages.change": {"name": "seized.txt", "tags": "seized"},
    "document_pages.act_on_selected": {"do": "ask"},
    "library_pages.add": {"name": "Seized"},
    "library_pages.change": {"everyone": "write"},
    "library_pages.share": {"person": "Cat", "access": "write"},
    "sidebar.pin": {"pinned": "true"},
    "sidebar.choose_theme": {"theme": "dark"},
}
QUERIES = {
    "api.search": "?q=why",
    "api.erase_turn": "?permanently=1",
}
# What ends something comes last, so that everything before it finds it.
ENDINGS = (
    "history_pages.erase", "sharing_api.take_back", "api.erase_turn", "openai.delete_response",
    "document_pages.delete_document", "documents_api.delete",
    "pages.delete_conversation", "pages.restore_conversation", "conversations_api.delete_conversation",
    "conversations_api.restore_conversation", "history_pages.purge", "sidebar.erase",
    "conversations_api.purge_conversation",
)  # fmt: skip


@dataclass
class World:
    """People with what is theirs, and who asks about it: Ben owns, Cat is another member, Ann the administrator."""

    app: Flask
    services: Services
    ids: dict[str, int] = field(default_factory=dict)
    callers: dict[str, FlaskClient] = field(default_factory=dict)
    narrow: dict[str, FlaskClient] = field(default_factory=dict)
    own: dict[str, int] = field(default_factory=dict)
    cells: int = 0

    def call(self, who: str, endpoint: str, method: str, path: str) -> TestResponse:
        self.cells += 1
        return send(self.callers[who], endpoint, method, path)


def send(client: FlaskClient, endpoint: str, method: str, path: str) -> TestResponse:
    more: dict[str, Any] = {}
    if endpoint in JSON_BODIES and method != "GET":
        more["json"] = JSON_BODIES[endpoint]
    elif endpoint in FORMS and method != "GET":
        more["data"] = FORMS[endpoint]
    elif endpoint in ("documents_api.add", "document_pages.add_documents"):
        more["data"] = {"file": (io.BytesIO(b"Geese."), f"note {time.monotonic_ns()}.txt")}
    response = client.open(path + QUERIES.get(endpoint, ""), method=method, buffered=True, **more)
    assert response.status_code != 500, (method, path)
    return response


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.long)])
def world(
    request: pytest.FixtureRequest, environment: dict[str, str], stand_ins: None, stub: StubModel
) -> Iterator[World]:
    if request.param == "postgresql":
        environment = environment | {"DATABASE_URL": request.getfixturevalue("postgres_database")}
    app = create_app(environment | {"MODEL_IMAGES": "true"})
    services: Services = app.extensions["assistant"]
    services.start()
    with quick_passwords():
        yield fill(World(app, services))
    services.close()


def fill(world: World) -> World:
    app, services = world.app, world.services
    ann, ben, cat, dan = (
        add_person(services, name, "admin" if name == "Ann" else "member") for name in ("Ann", "Ben", "Cat", "Dan")
    )
    owner, other, admin, disabled = (client_of(app, name) for name in ("Ben", "Cat", "Ann", "Dan"))
    services.accounts.set_disabled(dan, True, ACTOR)
    revoked = token_client(app, services, ben, "read", "ask", "documents")
    services.accounts.revoke_token(ben, services.accounts.tokens_of(ben)[0].id, ACTOR)
    document = upload(owner, f"The {CANARY} hisses at dawn.", f"{CANARY}.txt", tags=TAG)["document_id"]
    first = ask(owner, f"Why does the {CANARY} hiss?")
    picture = "data:image/jpeg;base64,/9j/4AAQ"
    second = ask(owner, f"And the {CANARY}?", conversation_id=first["conversation_id"], images=[picture])
    owner.post(f"/api/conversations/{first['conversation_id']}/compact", json={})
    library = owner.get("/api/libraries").json["libraries"][0]["library_id"]
    owner.patch(f"/api/libraries/{library}", json={"name": CANARY})
    owner.put(f"/api/turns/{first['turn_id']}/rating", json={"rating": "up", "right_answer": f"{CANARY}!"})
    gone = ask(owner, f"The {CANARY} in the trash?")["conversation_id"]
    owner.delete(f"/api/conversations/{gone}")
    services.accounts.make_token(ben, CANARY, ["read"], None, ACTOR)
    identities = LinkedIdentityStore(services.database)
    world.ids = {
        "conversation_id": first["conversation_id"],
        "turn_id": second["turn_id"],
        "document_id": document,
        "session_id": services.accounts.sessions_of(ben)[0].id,
        "token_id": services.accounts.tokens_of(ben)[0].id,
        "person_id": ben.id,
        "identity_id": identities.add(ben.id, ExternalIdentity("https://login.example", CANARY, CANARY)).id,
        "deleted": gone,
        "first_turn": first["turn_id"],
        "library_id": library,
        "link_id": services.links.make(first["conversation_id"], "a secret", True).id,
    }
    world.own = {"conversation_id": ask(other, "What of geese?")["conversation_id"]}
    world.own |= {"document_id": upload(other, "Geese swim.", "geese.txt", tags="birds")["document_id"]}
    world.callers = {
        "nobody": app.test_client(), "revoked token": revoked, "disabled person": disabled,
        "another person": other, "admin": admin, "owner": owner,
    }  # fmt: skip
    for ability in ABILITIES:
        rest = [one for one in ABILITIES if one not in (ability, "admin")]
        world.narrow[ability] = token_client(app, services, ben, *rest)
    world.narrow["session"] = token_client(app, services, services.accounts.named("Ann"), *ABILITIES)
    assert cat.id != ann.id
    return world


def routes(app: Flask) -> list[tuple[str, str, str]]:
    """Return endpoint, method and rule of every route, what ends something last."""
    found = [
        (rule.endpoint, method, rule.rule)
        for rule in app.url_map.iter_rules()
        for method in sorted((rule.methods or set()) - {"OPTIONS", "HEAD"})
        if rule.endpoint not in STATIC
    ]
    rank = {name: place for place, name in enumerate(ENDINGS, 2)}
    return sorted(found, key=lambda route: (rank.get(route[0], route[1] != "GET"), route[2]))


def path_of(rule: str, ids: dict[str, int], trash: bool = False) -> str:
    """Return an address of a rule; a name that is neither an id nor a number within one is an error here."""
    known = {"version": 1, "n": 1, "number": 1, "name": MODEL, "response_id": f"resp_{ids['turn_id']}"} | ids
    if trash:
        known["conversation_id"] = known["deleted"]
    return re.sub(r"<(?:\w+:)?(\w+)>", lambda found: str(known[found[1]]), rule)


def of_missing(world: World) -> dict[str, int]:
    return dict.fromkeys(world.ids, MISSING)


def has_foreign_id(rule: str) -> bool:
    return re.search(r"<int:(?!version|n>|number)\w+>|<response_id>", rule) is not None


def seen_by_strangers(response: TestResponse, *ids: int) -> tuple[int, str, str]:
    """Return what an answer says, without the number that was asked for and the words it was asked with."""
    text = response.text
    for number in ids:
        text = re.sub(rf"(?<![0-9A-Za-z]){number}\b", "N", text)
    text = re.sub(r"note \d+", "note", text)
    return response.status_code, response.headers.get("Location", ""), text


def kept_of_owner(world: World) -> list[Any]:
    """Return every row that has to do with the owner's conversations and documents."""
    names = ("conversations", "turns", "messages", "ratings", "receipts", "summaries", "documents", "document_tags")
    metadata = MetaData()
    metadata.reflect(world.services.database.engine, only=names)
    rows: list[Any] = []
    with world.services.database.read() as connection:
        for name in names:
            table = metadata.tables[name]
            for row in connection.execute(select(table)).all():
                if CANARY in repr(row) or name in ("summaries",):
                    rows.append((name, repr(row)))
    return sorted(rows)


def test_only_the_owner_reaches_what_is_theirs(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    kept = kept_of_owner(world)
    assert kept
    for endpoint, method, rule in routes(world.app):
        policy = POLICIES[endpoint]
        path = path_of(rule, world.ids)
        for who in ("nobody", "revoked token", "disabled person"):
            response = world.call(who, endpoint, method, path)
            assert CANARY not in response.text, (who, method, path)
            if policy.ability is not None:
                assert response.status_code == 401, (who, method, path)
        if policy.ability is not None:
            needed = "session" if policy.session else policy.ability
            world.cells += 1
            refused = send(world.narrow[needed], endpoint, method, path)
            assert refused.status_code == 403, (needed, method, path)
        if not has_foreign_id(rule) or policy.ability is None or endpoint == "people_pages.delete":
            continue
        for who in ("another person", "admin"):
            if policy.ability == "admin" and who == "admin":
                continue  # Accounts are an administrator's.
            for trash in (False, True) if "<int:conversation_id>" in rule else (False,):
                foreign = path_of(rule, world.ids, trash)
                mine = world.call(who, endpoint, method, foreign)
                absent = world.call(who, endpoint, method, path_of(rule, of_missing(world)))
                numbers = [MISSING, *world.ids.values()]
                assert seen_by_strangers(mine, *numbers) == seen_by_strangers(absent, *numbers), (who, method, foreign)
                assert mine.status_code in (403, 404), (who, method, foreign, mine.text)
                assert CANARY not in mine.text, (who, method, foreign)
    assert kept_of_owner(world) == kept
    for endpoint, method, rule in routes(world.app):
        policy = POLICIES[endpoint]
        if policy.ability in (None, "admin") or endpoint.startswith("account_pages."):
            continue
        trash = endpoint in ("sidebar.erase", "history_pages.purge", "conversations_api.purge_conversation")
        response = world.call("owner", endpoint, method, path_of(rule, world.ids))
        # Here the owner finds what nobody else did; afterwards it may be gone.
        if endpoint not in ENDINGS[1:] and not trash and endpoint not in LED_BY_A_SECRET:
            assert response.status_code not in (401, 403, 404) or "NoSummary" in response.text, (method, rule)
    with capsys.disabled():
        print(f"\nMatrix: {len(routes(world.app))} routes, {world.cells} cells, 0 leaks.")


@dataclass(frozen=True)
class Named:
    """A request that names something in its address or its body: ``made`` makes it from the ids."""

    what: str
    made: Callable[[FlaskClient, dict[str, Any]], TestResponse]


def _selected(do: str) -> Callable[[FlaskClient, dict[str, Any]], TestResponse]:
    return lambda client, ids: client.post(
        "/documents/selected", data={"do": do, "document_ids": ids["document_id"], "tags": "seized"}
    )


def _file() -> tuple[io.BytesIO, str]:
    return io.BytesIO(b"Newer."), "newer.txt"


def _tool(name: str, **arguments: str) -> Named:
    """Return the call of a tool over the Model Context Protocol; each argument is the id of that name."""

    def call(client: FlaskClient, ids: dict[str, Any]) -> TestResponse:
        sent = {argument: ids[name] for argument, name in arguments.items()} | SAID.get(name, {})
        sent |= {argument: [sent[argument]] for argument in ("document_ids", "tags") if argument in sent}
        called = {"name": name, "arguments": sent}
        return client.post("/mcp", json={"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": called})

    return Named(f"tool {name} {' '.join(arguments)}", call)


SAID: dict[str, dict[str, Any]] = {"ask": {"question": "Why?"}}
NAMED = [
    Named("query conversation_id", lambda client, ids: client.post(
        "/api/query", json={"question": "Why?", "conversation_id": ids["conversation_id"]})),
    Named("stream conversation_id", lambda client, ids: client.post(
        "/api/query/stream", json={"question": "Why?", "conversation_id": ids["conversation_id"]})),
    Named("query document_ids", lambda client, ids: client.post(
        "/api/query", json={"question": "Why?", "document_ids": [ids["document_id"]]})),
    Named("query tags", lambda client, ids: client.post(
        "/api/query", json={"question": "Why?", "tags": [ids["tag"]]})),
    Named("query edits_turn", lambda client, ids: client.post(
        "/api/query", json={"question": "Why?", "edits_turn": ids["first_turn"]})),
    Named("query edits_turn in own conversation", lambda client, ids: client.post(
        "/api/query", json={"question": "Why?", "edits_turn": ids["first_turn"], "conversation_id": ids["own"]})),
    Named("query confirms_turn", lambda client, ids: client.post(
        "/api/query", json={"question": "yes", "confirms_turn": ids["turn_id"], "conversation_id": ids["own"]})),
    Named("form conversation_id", lambda client, ids: client.post(
        "/ask", data={"question": "Why?", "conversation_id": ids["conversation_id"]})),
    Named("form document_ids", lambda client, ids: client.post(
        "/ask", data={"question": "Why?", "document_ids": ids["document_id"]})),
    Named("form command", lambda client, ids: client.post(
        "/ask", data={"question": "/history", "conversation_id": ids["conversation_id"]})),
    Named("form edits_turn", lambda client, ids: client.post(
        "/ask", data={"question": "Why?", "edits_turn": ids["first_turn"]})),
    Named("scope of own conversation", lambda client, ids: client.patch(
        f"/api/conversations/{ids['own']}", json={"document_ids": [ids["document_id"]]})),
    Named("tags of own conversation", lambda client, ids: client.patch(
        f"/api/conversations/{ids['own']}", json={"tags": [ids["tag"]]})),
    Named("search document_id", lambda client, ids: client.get(f"/api/search?q=hiss&document_id={ids['document_id']}")),
    Named("search conversation_id", lambda client, ids: client.get(
        f"/api/search?q=and+it&conversation_id={ids['conversation_id']}")),
    Named("search tag", lambda client, ids: client.get(f"/api/search?q=hiss&tag={ids['tag']}")),
    Named("documents tag", lambda client, ids: client.get(f"/api/documents?tag={ids['tag']}")),
    Named("page documents", lambda client, ids: client.get(f"/?documents={ids['document_id']}")),
    Named("page tag", lambda client, ids: client.get(f"/documents?tag={ids['tag']}")),
    Named("page deleted", lambda client, ids: client.get(f"/?deleted={ids['deleted']}")),
    Named("list open", lambda client, ids: client.get(f"/conversations?part=1&open={ids['conversation_id']}")),
    Named("settings conversation", lambda client, ids: client.get(f"/settings?conversation={ids['conversation_id']}")),
    Named("upload replaces", lambda client, ids: client.post(
        "/api/documents", data={"file": _file(), "replaces": ids["document_id"]})),
    Named("form upload replaces", lambda client, ids: client.post(
        "/documents", data={"file": _file(), "replaces": ids["document_id"]})),
    Named("upload into a library", lambda client, ids: client.post(
        "/api/documents", data={"file": _file(), "library_id": ids["library_id"]})),
    Named("form upload into a library", lambda client, ids: client.post(
        "/documents", data={"file": _file(), "library_id": ids["library_id"]})),
    Named("move into a library", lambda client, ids: client.patch(
        f"/api/documents/{ids['own_document']}", json={"library_id": ids["library_id"]})),
    Named("form move into a library", lambda client, ids: client.post(
        f"/documents/{ids['own_document']}/change", data={"name": "geese.txt", "library_id": ids["library_id"]})),
    Named("chat conversation id", lambda client, ids: client.post(
        "/v1/chat/completions", json=CHAT, headers={"X-Conversation-Id": str(ids["conversation_id"])})),
    Named("chat metadata", lambda client, ids: client.post(
        "/v1/chat/completions", json=CHAT | {"metadata": {"conversation_id": str(ids["conversation_id"])}})),
    Named("response conversation id", lambda client, ids: client.post(
        "/v1/responses", json={"model": MODEL, "input": "Why?"},
        headers={"X-Conversation-Id": str(ids["conversation_id"])})),
    Named("response behind another", lambda client, ids: client.post(
        "/v1/responses", json={"model": MODEL, "input": "Why?", "previous_response_id": f"resp_{ids['turn_id']}"})),
    Named("compact another's response", lambda client, ids: client.post(
        "/v1/responses/compact", json={"model": MODEL, "previous_response_id": f"resp_{ids['turn_id']}"})),
    _tool("ask", conversation_id="conversation_id"),
    _tool("ask", document_ids="document_id"),
    _tool("ask", tags="tag"),
    _tool("read_conversation", conversation_id="conversation_id"),
    _tool("get_receipt", turn_id="turn_id"),
    _tool("read_document", document_id="document_id"),
    Named("stream taken up", lambda client, ids: client.get(
        f"/api/turns/{ids['turn_id']}/stream", headers={"Last-Event-ID": "3"})),
    Named("response stream taken up", lambda client, ids: client.get(
        f"/v1/responses/resp_{ids['turn_id']}?stream=true&starting_after=1")),
    Named("is there anything new", lambda client, ids: client.head(f"/api/conversations/{ids['conversation_id']}")),
    Named("is the file as before", lambda client, ids: client.get(
        f"/api/documents/{ids['document_id']}/file", headers={"If-None-Match": "*", "Range": "bytes=0-1"})),
    Named("selected ask", _selected("ask")),
    Named("selected delete", _selected("delete")),
    Named("selected tag", _selected("tag")),
]  # fmt: skip


def test_what_a_body_or_an_address_names_is_not_there_either(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    kept = kept_of_owner(world)
    client = world.callers["another person"]
    own = {"own": world.own["conversation_id"], "own_document": world.own["document_id"]}
    foreign = world.ids | own | {"tag": TAG}
    missing = of_missing(world) | own | {"tag": "nosuchtag"}
    for named in NAMED:
        answers = [named.made(client, ids) for ids in (foreign, missing)]
        # What somebody asked for themselves stands in the answer; nothing else of it may.
        said = [
            seen_by_strangers(answer, MISSING, *world.ids.values())[2].replace(TAG, "T").replace("nosuchtag", "T")
            for answer in answers
        ]
        assert answers[0].status_code == answers[1].status_code != 500, named.what
        assert CANARY not in said[0], named.what
        assert _plain(said[0]) == _plain(said[1]), named.what
    assert kept_of_owner(world) == kept
    with capsys.disabled():
        print(f"\nMatrix: {2 * len(NAMED)} requests that name what is another's, 0 leaks.")


def _plain(text: str) -> str:
    """Return a page or an answer without what differs each time: moments, positions, and what was asked before."""
    text = re.sub(r"\d{4}-\d\d-\d\dT[\d:.+]+|\"turn\": ?\d+|turn-\d+", "", text)
    text = re.sub(r'(?s)data-tag="[^"]*"|<nav class="sidebar".*?</nav>', "", text)
    return re.sub(r"\d+", "N", text)


LISTS = (
    "/api/conversations", "/api/conversations?deleted=1", "/api/conversations?pinned=1",
    f"/api/conversations?q={CANARY}",
    "/api/conversations?q=hiss", "/api/documents", f"/api/documents?q={CANARY}", "/api/documents/tags", "/api/ratings",
    f"/api/search?q={CANARY}", "/api/search?q=hisses+at+dawn", "/", f"/?q={CANARY}", "/conversations", "/documents",
    f"/documents?q={CANARY}", "/deleted", "/ratings", "/settings", "/account", "/libraries",
    "/api/libraries",
)  # fmt: skip


def test_no_list_search_answer_or_log_holds_what_is_anothers(
    world: World, stub: StubModel, caplog: pytest.LogCaptureFixture
) -> None:
    for who in ("another person", "admin"):
        client = world.callers[who]
        for path in LISTS:
            said = client.get(path).text
            for echo in (f"q={CANARY}", f'"{CANARY}"', f"<bdi>{CANARY}</bdi>", "hisses at dawn"):
                said = said.replace(echo, "")  # What was sought for is said again.
            assert CANARY not in said, (who, path)
            assert "dawn" not in said, (who, path)
        before = len(stub.requests)
        answer = ask(client, "What hisses at dawn, and why?")
        assert answer["sources"] == []
        assert CANARY not in repr([seen.body for seen in stub.requests[before:]])
        receipt = client.get(f"/api/turns/{answer['turn_id']}/receipt").text
        assert CANARY not in receipt
    for path in ("/healthz", "/readyz", "/login", "/nothing"):
        assert CANARY not in world.callers["nobody"].get(path).text
    assert CANARY not in caplog.text


def test_the_same_key_of_two_people_gives_each_their_own_turn(world: World) -> None:
    turns = [
        world.callers[who]
        .post("/api/query", json={"question": "Mine?"}, headers={"Idempotency-Key": "one key"})
        .json["turn_id"]
        for who in ("owner", "another person", "owner", "another person")
    ]
    assert turns[0] == turns[2] != turns[1] == turns[3]


@pytest.mark.long
def test_what_is_anothers_takes_as_long_as_what_is_not_there(world: World) -> None:
    client = world.callers["another person"]
    for path in ("/api/conversations/{}", "/api/turns/{}", "/api/documents/{}"):
        name = {"c": "conversation_id", "t": "turn_id", "d": "document_id"}[path.split("/")[2][0]]
        costs: dict[int, list[float]] = {world.ids[name]: [], MISSING: []}
        for _ in range(60):
            for number, taken in costs.items():
                before = time.thread_time()
                assert client.get(path.format(number), buffered=True).status_code == 404
                taken.append(time.thread_time() - before)
        foreign, absent = (median(taken) for taken in costs.values())
        assert 0.7 < foreign / absent < 1.4, path
