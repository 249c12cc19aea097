"""Below a path of a proxy, such as /rag: every address that a page or an answer holds begins with it."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from flask.testing import FlaskClient

from rag_assistant.web import create_app
from tests.testkit.people import add_person, client_of, quick_passwords
from tests.web.conftest import PAGE, ask, upload

JS = Path(__file__).resolve().parents[2] / "static" / "js"
OWN_PATHS = re.compile(r'(?:href|src|action|formaction|data-(?!command|keys)[a-z-]+)="(/[^"]*)"')


@pytest.fixture
def below(environment: dict[str, str]) -> Iterator[FlaskClient]:
    """A client of a server that is told its path."""
    app = create_app(environment | {"BASE_PATH": "/rag"})
    app.extensions["assistant"].start()
    yield app.test_client()
    app.extensions["assistant"].close()


def test_every_address_in_a_page_has_the_prefix(below: FlaskClient) -> None:
    upload(below, "Geese hiss.")
    ask(below)
    paths = ("/", "/conversations/1", "/documents", "/documents/1", "/settings", "/conversations", "/turns/1/receipt")
    for path in paths:
        page = below.get(path, headers=PAGE).text
        found = OWN_PATHS.findall(page)
        assert found, path
        assert [address for address in found if not (address + "/").startswith("/rag/")] == [], path
    assert '<html lang="en" dir="ltr" data-root="/rag"' in below.get("/", headers=PAGE).text


def test_the_path_is_taken_away_by_the_proxy_or_by_us(below: FlaskClient) -> None:
    for path in ("/rag/healthz", "/healthz"):
        assert below.get(path).json == {"status": "ok"}
    assert below.get("/rag", headers=PAGE).status_code == 200
    assert below.get("/ragged/healthz").status_code == 404


@pytest.mark.parametrize("header", ["X-Forwarded-Prefix", "X-Script-Name", "Script-Name", "SCRIPT_NAME"])
def test_no_header_names_the_path(empty: FlaskClient, header: str) -> None:
    page = empty.get("/", headers=PAGE | {header: "//elsewhere.example"})
    assert '<html lang="en" dir="ltr" data-root=""' in page.text
    chosen = empty.post("/theme", data={"theme": "dark"}, headers=PAGE | {header: "//elsewhere.example"})
    assert (chosen.headers["Location"], "Path=/;" in chosen.headers["Set-Cookie"]) == ("/", True)


def test_scripts_ask_for_nothing_without_the_prefix() -> None:
    bare = re.compile(r"""(?<!address\()["'`]/(?:api|conversations|documents|settings|turns|readyz|\?)""")
    assert [(path.name, line) for path in JS.rglob("*.js") for line in bare.findall(path.read_text())] == []


def test_what_leads_elsewhere_and_what_a_browser_keeps_have_the_prefix(below: FlaskClient) -> None:
    asked = below.post("/ask", data={"question": "Why?"}, headers=PAGE)
    assert asked.headers["Location"].startswith("/rag/conversations/1")
    chosen = below.post("/theme", data={"theme": "dark"}, headers=PAGE)
    assert chosen.headers["Location"] == "/rag/"
    assert "Path=/rag/;" in chosen.headers["Set-Cookie"]


def test_a_link_for_somebody_else_has_the_prefix(below: FlaskClient) -> None:
    with quick_passwords():
        add_person(below.application.extensions["assistant"], "Ann", "admin")
        ann = client_of(below.application, "Ann")
        assert ann.post("/rag/ask", data={"question": "Why?"}, headers=PAGE).status_code == 303
        for path, address in (("conversations/1/links", "shared"), ("people", "choose-password")):
            page = ann.post(f"/rag/{path}", data={"name": "Ben", "new": "read"}, headers=PAGE).text
            assert re.search(rf"http://localhost/rag/{address}\?link=[\w-]{{43}}", page), path


def test_the_api_and_its_streams_work_below_the_prefix(below: FlaskClient) -> None:
    answer = below.post("/api/query", json={"question": "Why?"})
    assert answer.status_code == 200
    stream = below.get(f"/api/turns/{answer.json['turn_id']}/stream")
    assert "event: end\n" in stream.text
    assert below.get("/api/nothing").content_type == "application/json"


def test_a_page_of_ours_behind_https_may_ask(below: FlaskClient) -> None:
    """gunicorn takes the scheme from X-Forwarded-Proto, and a browser names the origin with it."""
    asked = below.post(
        "/api/query", json={"question": "Why?"}, base_url="https://localhost",
        headers={"Origin": "https://localhost"},
    )  # fmt: skip
    assert asked.status_code == 200
