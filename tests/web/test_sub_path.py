"""Below a path of a proxy, such as /rag: every address that a page or an answer holds begins with it."""

import re
from pathlib import Path

from flask.testing import FlaskClient

from tests.web.conftest import PAGE, ask, upload

JS = Path(__file__).resolve().parents[2] / "static" / "js"
BEHIND_A_PROXY = {"X-Forwarded-Prefix": "/rag"}
OWN_PATHS = re.compile(r'(?:href|src|action|formaction|data-(?!command|keys)[a-z-]+)="(/[^"]*)"')


def test_every_address_in_a_page_has_the_prefix(client: FlaskClient) -> None:
    upload(client, "Geese hiss.")
    ask(client)
    paths = ("/", "/conversations/1", "/documents", "/documents/1", "/settings", "/conversations", "/turns/1/receipt")
    for path in paths:
        page = client.get(path, headers=PAGE | BEHIND_A_PROXY).text
        found = OWN_PATHS.findall(page)
        assert found, path
        assert [address for address in found if not (address + "/").startswith("/rag/")] == [], path
    assert '<html lang="en" data-root="/rag"' in client.get("/", headers=PAGE | BEHIND_A_PROXY).text
    assert '<html lang="en" data-root=""' in client.get("/", headers=PAGE).text


def test_scripts_ask_for_nothing_without_the_prefix() -> None:
    bare = re.compile(r"""(?<!address\()["'`]/(?:api|conversations|documents|settings|turns|readyz|\?)""")
    assert [(path.name, line) for path in JS.rglob("*.js") for line in bare.findall(path.read_text())] == []


def test_what_leads_elsewhere_and_what_a_browser_keeps_have_the_prefix(client: FlaskClient) -> None:
    asked = client.post("/ask", data={"question": "Why?"}, headers=PAGE | BEHIND_A_PROXY)
    assert asked.headers["Location"].startswith("/rag/conversations/1")
    chosen = client.post("/theme", data={"theme": "dark"}, headers=PAGE | BEHIND_A_PROXY)
    assert chosen.headers["Location"] == "/rag/"
    assert "Path=/rag/;" in chosen.headers["Set-Cookie"]
    assert "Path=/;" in client.post("/theme", data={"theme": "dark"}, headers=PAGE).headers["Set-Cookie"]


def test_the_api_and_its_streams_work_below_the_prefix(client: FlaskClient) -> None:
    answer = client.post("/api/query", json={"question": "Why?"}, headers=BEHIND_A_PROXY)
    assert answer.status_code == 200
    stream = client.get(f"/api/turns/{answer.json['turn_id']}/stream", headers=BEHIND_A_PROXY)
    assert "event: end\n" in stream.text
    assert client.get("/api/nothing", headers=BEHIND_A_PROXY).content_type == "application/json"


def test_a_page_of_ours_behind_https_may_ask(client: FlaskClient) -> None:
    """gunicorn takes the scheme from X-Forwarded-Proto, and a browser names the origin with it."""
    asked = client.post(
        "/api/query", json={"question": "Why?"}, base_url="https://localhost",
        headers=BEHIND_A_PROXY | {"Origin": "https://localhost"},
    )  # fmt: skip
    assert asked.status_code == 200
