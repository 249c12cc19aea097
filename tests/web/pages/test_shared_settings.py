"""The settings page of servers that share a database: what is saved at one of them holds at all."""

import html
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from flask import Flask
from flask.testing import FlaskClient
from werkzeug.test import TestResponse

from rag_assistant.web import create_app
from tests.web.conftest import PAGE, until

STAMP = re.compile(r'name="stamp" value="([0-9]+)"')


@pytest.fixture
def webs(environment: dict[str, str], postgres_database: str, tmp_path: Path) -> Iterator[list[Flask]]:
    """Two servers, the second of which has a shorter window in its file."""
    opened = []
    for name in ("one", "other"):
        folder = tmp_path / name
        folder.mkdir()
        own = {
            "DATABASE_URL": postgres_database,
            "DATA_DIR": str(folder),
            "SETTINGS_FILE": str(folder / "settings.json"),
        }
        (folder / "settings.json").write_text('{"max_history_turns": 3}' if name == "other" else "{}")
        left = {key: value for key, value in environment.items() if key != "OPENAI_API_KEY"}
        opened.append(create_app(left | own))
        opened[-1].test_client().get("/healthz")  # A server starts with its first request.
    yield opened
    for app in opened:
        app.extensions["assistant"].close()


def save(page: FlaskClient, at: FlaskClient, **fields: str) -> TestResponse:
    stamp = STAMP.search(page.get("/settings", headers=PAGE).text)
    assert stamp is not None
    return at.post("/settings", data={"stamp": stamp[1], **fields}, headers=PAGE)


def turns(app: Flask) -> object:
    return app.extensions["assistant"].settings.current.max_history_turns


@pytest.mark.long
def test_what_is_saved_through_any_of_them_holds_at_all_and_writes_no_file(webs: list[Flask], tmp_path: Path) -> None:
    one, other = (app.test_client() for app in webs)
    differs = "max_history_turns is 5 here and 3 at another server."
    assert differs in html.unescape(one.get("/settings", headers=PAGE).text)
    for number in range(6, 17):
        page, at = (one, other) if number % 2 else (other, one)
        assert save(page, at, max_history_turns=str(number)).status_code == 200
    until(lambda: [turns(app) for app in webs] == [16, 16])
    shown = html.unescape(other.get("/settings?filter=max_history_turns", headers=PAGE).text)
    assert "settings page" in shown
    until(lambda: differs not in html.unescape(one.get("/settings", headers=PAGE).text))
    assert (tmp_path / "one" / "settings.json").read_text() == "{}"
    (tmp_path / "other" / "settings.json").write_text('{"max_history_turns": 2, "on_overflow": "ask"}')
    until(lambda: webs[1].extensions["assistant"].settings.current.on_overflow == "ask")
    assert turns(webs[1]) == 16


@pytest.mark.long
def test_a_page_from_before_anothers_change_saves_nothing_and_no_key_is_kept(
    webs: list[Flask],
) -> None:
    one, other = (app.test_client() for app in webs)
    stamp = STAMP.search(one.get("/settings", headers=PAGE).text)
    assert stamp is not None
    assert save(other, other, max_history_turns="7").status_code == 200
    late = one.post("/settings", data={"stamp": stamp[1], "max_history_turns": "9"}, headers=PAGE)
    assert (late.status_code, "nothing was saved" in late.text) == (409, True)
    key = save(one, one, openai_api_key="sk-secret")
    assert key.status_code == 422
    assert "set OPENAI_API_KEY for each of them" in html.unescape(key.text)
    wrong = save(one, one, max_history_turns="ten")
    assert wrong.status_code == 422
    until(lambda: [turns(app) for app in webs] == [7, 7])
