"""Every secret has a canary here, the product is used in every way, and none of them turns up where it may not.

Which settings hold secrets is decided in tests/settings/test_secrets.py.
"""

import json
import logging
import re
from collections.abc import Callable, Iterator
from functools import partial
from importlib.util import find_spec
from pathlib import Path

import pytest
from flask import Flask
from flask.testing import FlaskClient
from sqlalchemy import MetaData, select

from rag_assistant.retrieval.indexes.chroma import ChromaIndex
from rag_assistant.services import Services
from rag_assistant.web import create_app
from tests.testkit.people import PASSWORD, client_of, quick_passwords
from tests.testkit.stub_model import Reply, StubModel
from tests.web.canaries import BODY, CANARIES, Found, echoing, secret_settings
from tests.web.conftest import PAGE, ask, events_of, post, until, upload
from tests.web.processes import Processes

NEW_PASSWORD = "canary words in a row"
# As it is without the stand-ins.
start_chroma = ChromaIndex.start


def pages_of(app: Flask, ids: dict[str, str]) -> Iterator[str]:
    for rule in app.url_map.iter_rules():
        if "GET" in (rule.methods or ()) and rule.endpoint not in ("static", "versioned_static"):
            yield re.sub(r"<(?:\w+:)?(\w+)>", lambda found: ids.get(found[1], "1"), rule.rule)


Start = Callable[..., Flask]


@pytest.fixture
def start(
    environment: dict[str, str],
    stub: StubModel,
    postgres_database: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    every: bool,
) -> Iterator[Start]:
    """Starts a container's application whose every secret is set and used, and ends the one before."""
    monkeypatch.setattr("rag_assistant.accounts.accounts.in_container", lambda: True)
    # Where pgvector searches, Chroma, which is a process of its own, would not be started.
    monkeypatch.setattr("rag_assistant.storage.documents.vector_table.OFFERED", "SELECT 1 WHERE false")
    secrets = secret_settings(stub, postgres_database, tmp_path)
    if not every and "MCP_SERVERS" in secrets:
        # Whoever sees it sees the words of its setting all the same, and to load a real one takes seconds.
        secrets["MCP_SERVERS"] = json.dumps({"test": ["sh", "-c", "sleep 0.3", CANARIES["mcp_servers"]]})
    for name, value in secrets.items():
        monkeypatch.setenv(name, value)
    if every:
        monkeypatch.setattr("rag_assistant.retrieval.indexes.chroma.ChromaIndex.start", start_chroma)
    more = {"HOST": "0.0.0.0", "RETRIEVAL_MODE": "agent", "QUERY_REWRITING": "model"}
    running: list[Services] = []

    def _start(**changed: str) -> Flask:
        for services in running:
            services.close()
        made = create_app(environment | secrets | more | {"LOG_LEVEL": "DEBUG"} | changed)
        running[:] = [made.extensions["assistant"]]
        running[0].start()
        return made

    yield _start
    for services in running:
        services.close()


@pytest.mark.skipif(find_spec("mcp") is None, reason="pip install -e '.[mcp]'")
def test_every_secret_setting_is_used_with_its_canary(stub: StubModel, tmp_path: Path) -> None:
    used = " ".join(secret_settings(stub, "postgresql+psycopg://somebody@localhost/", tmp_path).values())
    assert [name for name, canary in CANARIES.items() if canary not in used] == []


@pytest.mark.parametrize("every", [False, pytest.param(True, marks=pytest.mark.long)])
def test_no_secret_turns_up_anywhere(
    start: Start,
    confined_readers: None,
    stub: StubModel,
    caplog: pytest.LogCaptureFixture,
    tmp_path: Path,
    every: bool,
) -> None:
    """Every time without Chroma, a tool server that works, some errors, and what programs see of pages."""
    caplog.set_level(logging.DEBUG, "rag_assistant")
    found, processes = Found(), Processes()
    app = start()
    with quick_passwords():
        admin, issued = come_in(app, found, caplog)
        issued["shared link"] = use(app, admin, found, stub, every)
        use_tokens(app, found, issued, stub)
    programs = ("extraction.extract", *(("indexes.chroma_process",) if every else ()))
    until(lambda: all(any(name in command for command in processes.seen) for name in programs), 60)
    # Other programs have shown what they are called with by now.
    app = start(MCP_SERVERS="{}")
    services: Services = app.extensions["assistant"]
    use_after_restart(app, found, issued)
    processes.close()
    found.add("log", caplog.text)
    for command, (_, environment) in processes.seen.items():
        found.add(f"environment of {command}", environment)
        # What starts a tool server are the words of its setting: whoever sees its process sees them.
        if CANARIES["mcp_servers"] not in command:
            found.add(f"process list {command}", command)
    found.add("database", rows_of(services))
    for path in (tmp_path / "data").rglob("*"):
        if path.is_file():
            found.add(f"file {path.name}", path.read_bytes())
    assert any(CANARIES["mcp_servers"] in command for command in processes.seen)
    used_by = {"openai": stub.requests, "embedding": stub.embedding_requests, "rerank": stub.rerank_requests}
    for name, used in used_by.items():
        assert CANARIES[f"{name}_api_key"] in used[-1].headers["authorization"]
    assert found.hits(CANARIES | issued) == []
    assert len(found.hits({"what may be seen": "The heron hisses at dawn"})) > 20


def come_in(app: Flask, found: Found, caplog: pytest.LogCaptureFixture) -> tuple[FlaskClient, dict[str, str]]:
    """Create accounts, sessions, tokens and links as people do; return an administrator and what was issued."""
    client = app.test_client()
    # In the log of the start it belongs, and nowhere else.
    code = re.search(r"with this code: (\S+)", caplog.text)
    assert code is not None
    caplog.clear()
    found.ask(client, "GET", "/setup", headers=PAGE)
    found.ask(client, "POST", "/setup", data={"code": "wrong", "name": "Ann", "password": PASSWORD}, headers=PAGE)
    assert post(client, "/setup", code=code[1], name="Ann", password=PASSWORD)[0] == 303
    found.ask(
        client, "POST", "/people", data={"name": "Ben", "role": "member", "email": "ben@example.org"}, headers=PAGE
    )
    shown = found.texts.pop()[1]
    link = re.search(r"/choose-password\?link=([\w-]+)", shown)
    assert link is not None
    guest = app.test_client()
    assert post(guest, "/choose-password", link=link[1], password=NEW_PASSWORD)[0] == 303
    found.ask(guest, "GET", f"/choose-password?link={link[1]}", headers=PAGE)
    found.ask(client, "POST", "/login", data={"name": "Ben", "password": f"not {NEW_PASSWORD}"}, headers=PAGE)
    wrong = {"old": f"not {PASSWORD}", "new": NEW_PASSWORD}
    found.ask(client, "POST", "/account/password", data=wrong, headers=PAGE)
    _, page = post(client, "/account/tokens", name="Laptop", scopes="admin", days="30")
    token = re.search(r"<code>(rag_[\w-]{43})</code>", page)
    assert token is not None
    issued = {"setup code": code[1], "password": PASSWORD, "new password": NEW_PASSWORD, "password link": link[1]}
    issued |= {"token": token[1]}
    for name, one in (("session", client), ("other session", guest)):
        cookie = one.get_cookie("session")
        assert cookie is not None
        issued[name] = cookie.value
    return client, issued


def use(app: Flask, client: FlaskClient, found: Found, stub: StubModel, every: bool) -> str:
    """Ask, upload, search, fail, summarise, share, export, and open every page; return the secret of a shared link."""
    stub.default = Reply("At dawn [1].")
    upload(client, "The heron hisses at dawn. " * 30, "heron.txt")
    upload(client, b"%PDF-1.4 broken", "broken.pdf")
    first = ask(client, "When does the heron hiss?")["conversation_id"]
    for question in ("And why?", "Since when?", "Who says so?"):
        ask(client, question, conversation_id=first)
    ordinary = stub.next_reply
    for status in (401, 400, 500) if every else (401,):
        stub.next_reply = partial(echoing, status=status)
        found.ask(client, "POST", "/api/query", json={"question": "Why?"})
        found.ask(client, "POST", "/api/query/stream", json={"question": "Why?"})
        found.ask(client, "POST", "/v1/chat/completions", json={
            "model": "rag-assistant", "messages": [{"role": "user", "content": "Why?"}]})  # fmt: skip
        found.ask(client, "POST", f"/api/conversations/{first}/compact", json={})
        for replies, key in (
            (stub.embedding_replies, "embedding_api_key"), (stub.rerank_replies, "rerank_api_key"),
        ):  # fmt: skip
            replies.append(Reply(status=status, body=BODY % CANARIES[key].encode()))
        found.ask(client, "GET", f"/api/search?q=heron+{status}")
        found.ask(client, "POST", "/v1/embeddings", json={"model": "rag-assistant-embeddings", "input": ["a heron"]})
    found.ask(client, "POST", "/api/model/test", json={})
    found.ask(client, "POST", "/settings", data={"test": 1}, headers=PAGE)
    stub.next_reply = ordinary
    stub.embedding_replies.clear()
    stub.rerank_replies.clear()
    found.ask(client, "GET", "/api/export?files=1")
    found.ask(client, "GET", f"/api/conversations/{first}/export?format=json")
    found.ask(client, "POST", "/api/conversations/import", data=b"{", content_type="application/json")
    status, page = post(client, f"/conversations/{first}/links", new="sources")
    link = re.search(r"/shared\?link=([\w-]+)", page)
    assert (status, link is not None) == (200, True)
    found.ask(client, "POST", "/api/conversations/1/commands", json={"command": "/history"})
    for path in pages_of(app, {"conversation_id": str(first), "name": "rag-assistant", "response_id": "resp_1"}):
        usual = "application/json" if path.startswith(("/api/", "/v1/")) else "text/html"
        for accept in ("text/html", "application/json") if every else (usual,):
            found.ask(client, "GET", path, headers={"Accept": accept})
    found.ask(client, "GET", "/readyz?model=1")
    assert link is not None
    return link[1]


def use_tokens(app: Flask, found: Found, issued: dict[str, str], stub: StubModel) -> None:
    """Show tokens, right ones and wrong ones, and links."""
    bearer = {"Authorization": f"Bearer {issued['token']}"}
    client = app.test_client()
    for path in ("/api/settings", "/metrics", "/api/account", "/api/conversations", "/nothing", "/account"):
        found.ask(client, "GET", path, headers=bearer)
        found.ask(client, "GET", path, headers={"Authorization": f"Bearer {issued['token']}x"})
        found.ask(client, "GET", path, headers={"Authorization": issued["session"]})
    client.set_cookie("session", issued["token"])
    found.ask(client, "GET", "/api/conversations", headers=bearer)
    ben = client_of(app, "Ben", NEW_PASSWORD)
    stub.replies.append(Reply("word " * 5, seconds_between=0.01))
    assert events_of(ben.post("/api/query/stream", json={"question": "Why?"}).data)
    found.ask(ben, "GET", "/account", headers=PAGE)


def use_after_restart(app: Flask, found: Found, issued: dict[str, str]) -> None:
    """Go on with what was issued before the server ended: a session, a token and a link."""
    client = app.test_client()
    client.set_cookie("session", issued["session"])
    assert found.ask(client, "POST", "/api/query", json={"question": "When does the heron hiss?"}) == 200
    for path in (
        "/",
        "/account",
        "/people",
        "/api/settings",
        "/metrics",
        "/readyz",
        f"/shared?link={issued['shared link']}",
    ):
        found.ask(client, "GET", path, headers=PAGE)
    bearer = {"Authorization": f"Bearer {issued['token']}"}
    assert found.ask(app.test_client(), "GET", "/api/settings", headers=bearer) == 200


def rows_of(services: Services) -> str:
    """Return every row of every table as text."""
    metadata = MetaData()
    metadata.reflect(services.database.engine)
    with services.database.read() as connection:
        return repr([connection.execute(select(table)).all() for table in metadata.sorted_tables])
