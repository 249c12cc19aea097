"""Who may ask, and what leaves: checked on every route that there is."""

import re
import socket
from pathlib import Path

import pytest
from flask import Flask, request_started
from flask.testing import FlaskClient

from rag_assistant.services import Services
from rag_assistant.web import create_app
from rag_assistant.web.routing import PUBLIC, routes_of
from rag_assistant.web.security import HEADERS
from tests.testkit.loopback_only import ForeignConnection
from tests.testkit.routes import some_of
from tests.testkit.stub_model import Reply, StubModel
from tests.web.conftest import ask, upload

STATIC = Path(__file__).resolve().parents[2] / "static"


def routes(app: Flask) -> list[tuple[str, str]]:
    """Return every method and path of the application, with 1 for every id."""
    return [
        (method, re.sub(r"<[^>]+>", "1", rule.rule))
        for rule in app.url_map.iter_rules()
        for method in sorted((rule.methods or set()) - {"OPTIONS", "HEAD"})
    ]


FOREIGN_HOSTS = ("evil.example", "127.0.0.1.nip.io", "localhost.evil", "evil.example:8000", "")
FOREIGN_PAGES = (
    {"Origin": "http://evil.example"},
    {"Origin": "null"},
    {"Origin": "http://localhost:9999"},
    {"Sec-Fetch-Site": "cross-site"},
    {"Sec-Fetch-Site": "same-site"},
    {"Sec-Fetch-Site": "cross-site", "Origin": "http://localhost"},
    {"Sec-Fetch-Site": "cross-site", "Origin": "null"},
)


@pytest.mark.parametrize("every", [False, pytest.param(True, marks=pytest.mark.long)])
def test_no_route_answers_a_foreign_host(app: Flask, client: FlaskClient, every: bool) -> None:
    assert len(routes(app)) > 30
    for number, (method, path) in enumerate(routes(app)):
        for host in some_of(FOREIGN_HOSTS, number, every):
            response = client.open(path, method=method, headers={"Host": host})
            assert response.status_code == 400, (method, path, host)


@pytest.mark.parametrize("every", [False, pytest.param(True, marks=pytest.mark.long)])
def test_no_foreign_page_can_change_anything(app: Flask, client: FlaskClient, every: bool) -> None:
    ask(client)
    unsafe = [(method, path) for method, path in routes(app) if method != "GET"]
    assert len(unsafe) > 15
    for number, (method, path) in enumerate(unsafe):
        for headers in some_of(FOREIGN_PAGES, number, every):
            response = client.open(path, method=method, headers=headers)
            assert response.status_code == 403, (method, path, headers)
    assert len(client.get("/api/conversations").json["conversations"]) == 1


def test_our_own_pages_and_programs_may_ask(client: FlaskClient) -> None:
    ours: tuple[dict[str, str], ...] = (
        {},
        {"Origin": "http://localhost"},
        {"Sec-Fetch-Site": "same-origin"},
        {"Sec-Fetch-Site": "same-origin", "Origin": "null"},
        {"Sec-Fetch-Site": "none"},
    )
    for headers in ours:
        assert client.post("/api/query", json={"question": "Why?"}, headers=headers).status_code == 200, headers


@pytest.mark.parametrize("accept", ["text/html", pytest.param("application/json", marks=pytest.mark.long)])
def test_every_answer_has_the_headers_no_cors_and_no_secret(
    app: Flask, client: FlaskClient, stub: StubModel, caplog: pytest.LogCaptureFixture, accept: str
) -> None:
    """In what programs read, test_canaries.py looks for secrets every time, too."""
    secret, seen = "sk-canary-secret", ""
    for status in (401, 400):
        stub.default = Reply(status=status, body=f'{{"error": {{"message": "Incorrect key: {secret}"}}}}'.encode())
        seen += client.post("/api/query", json={"question": "Why?"}).text
    stub.default = Reply()
    ask(client)
    upload(client, "Some text.")
    seen += caplog.text
    paths = [*routes(app), ("GET", "/nothing"), ("GET", "/static/base.css"), ("GET", "/api/nothing")]
    for method, path in paths:
        with client.open(path, method=method, headers={"Accept": accept}, buffered=True) as response:
            seen += response.data.decode(errors="replace")
            for name, value in HEADERS.items():
                if not path.endswith("/file"):
                    assert response.headers[name] == value, (path, name)
            assert not [name for name, _ in response.headers if name.lower().startswith("access-control")], path
    assert "openai_api_key" in seen
    assert secret not in seen


def test_settings_say_whether_a_secret_is_set(client: FlaskClient) -> None:
    rows = {row["name"]: row for row in client.get("/api/settings").json["settings"]}
    assert rows["openai_api_key"]["set"] is True
    assert "value" not in rows["openai_api_key"]
    assert rows["max_history_turns"] | {"description": ""} == {
        "name": "max_history_turns",
        "value": 5,
        "origin": "default",
        "live": True,
        "description": "",
    }


def test_no_test_and_no_server_of_the_tests_speaks_to_another_machine() -> None:
    with socket.socket() as ours, pytest.raises(ForeignConnection, match="192.0.2.1"):
        ours.connect(("192.0.2.1", 80))


def test_html_enters_the_page_in_one_place_only() -> None:
    sinks = re.compile(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\(|new Function")
    found = [path.name for path in STATIC.rglob("*.js") if sinks.search(path.read_text())]
    assert found == ["html.js"]
    inline = re.compile(r'\|\s*safe|<script(?! type="module" src)|\sstyle=|\son\w+=')
    templates = (STATIC.parent / "templates").glob("*.html")
    assert not [path.name for path in templates if inline.search(path.read_text())]
    python = (STATIC.parent / "rag_assistant").rglob("*.py")
    # languages.py marks texts of our own catalogs, routes.py what a template drew once.
    marking = sorted(path.name for path in python if "Markup(" in path.read_text())
    assert marking == ["languages.py", "render.py", "routes.py"]


def test_a_broken_settings_file_is_named_where_people_look(client: FlaskClient, services: Services) -> None:
    (services.data_dir.parent / "settings.json").write_text('{\n"max_history_turns": "ten"}')
    services.settings.look()
    services.settings.look()
    sentence = 'settings.json line 2: max_history_turns is "ten"; it must be a whole number, 0 or more'
    assert sentence in client.get("/readyz").json["settings_problem"]
    assert sentence in client.get("/api/settings").json["problem"]
    assert "settings.json line 2: max_history_turns is &#34;ten&#34;" in client.get("/").text
    assert ask(client)["history"]["max_history_turns"] == 5


def test_every_route_has_a_policy_and_the_public_ones_are_these(app: Flask) -> None:
    assert {route.endpoint for route in routes_of(app) if route.policy == PUBLIC} == {
        "health.healthz", "health.readyz", "versioned_static",
        *(f"account_pages.{name}" for name in ("login", "sign_in", "setup", "make_first", "choose_password")),
        "account_pages.keep_password",
        *(f"account_pages.{name}" for name in ("begin", "begin_with_invitation", "come_back")),
        "openapi.openapi_json", "openapi.docs", "mcp.llms_txt", "help_pages.front", "help_pages.page",
        *(f"help_pages.{name}" for name in ("manifest", "favicon", "service_worker", "offline")),
    }  # fmt: skip
    with pytest.raises(TypeError, match="policy"):
        app.url_rule_class("/new")


@pytest.mark.parametrize(("trusted", "expected"), [('["10.0.0.2"]', "203.0.113.9 https"), ("[]", "10.0.0.2 http")])
def test_only_a_named_proxy_says_where_a_request_comes_from(
    environment: dict[str, str], trusted: str, expected: str
) -> None:
    told = {"X-Forwarded-For": "203.0.113.9", "X-Forwarded-Proto": "https", "X-Forwarded-Host": "evil.example"}
    app = create_app(environment | {"TRUSTED_PROXIES": trusted})
    seen: list[str] = []
    with request_started.connected_to(lambda _: seen.append(_where()), app):
        answer = app.test_client().get("/healthz", headers=told, environ_base={"REMOTE_ADDR": "10.0.0.2"})
    assert answer.status_code == 200
    assert seen == [expected]
    app.extensions["assistant"].close()


def _where() -> str:
    from flask import request

    assert request.host == "localhost"
    return f"{request.remote_addr} {request.scheme}"


@pytest.mark.parametrize("host", ["localhost:80:80", "[::1]:80:80", "a:80:80"])
def test_a_host_with_two_ports_is_refused(client: FlaskClient, host: str) -> None:
    assert client.get("/healthz", headers={"Host": host}).status_code == 400
