"""Scripts and style sheets are compressed and kept; pages and the API are not compressed."""

import gzip
import re
from pathlib import Path

import pytest
from flask.testing import FlaskClient

from rag_assistant.web.assets import SHEETS, version_of
from tests.web.conftest import PAGE, ask

PROJECT = Path(__file__).resolve().parents[2]
BROWSER = {"Accept-Encoding": "gzip, deflate, br, zstd"}


def addresses(client: FlaskClient) -> list[str]:
    text = client.get("/", headers=PAGE).text
    return re.findall(r'(?:src|href)="(/static/[^"]+)"', text)


def test_every_script_and_sheet_of_a_page_is_compressed_and_kept_for_good(empty: FlaskClient) -> None:
    found = addresses(empty)
    assert {Path(address).name for address in found} == {"icon.svg", "all.css", "all.js"}
    for address in found:
        response = empty.get(address, headers=BROWSER)
        assert response.status_code == 200, address
        assert response.headers["Cache-Control"] == "public, max-age=31536000, immutable"
        assert response.headers["X-Content-Type-Options"] == "nosniff"
        assert "Content-Security-Policy" in response.headers
        assert response.headers["Content-Encoding"] == "gzip"
        assert "Accept-Encoding" in response.headers["Vary"]


def test_what_is_unpacked_is_every_sheet(empty: FlaskClient) -> None:
    address = next(one for one in addresses(empty) if one.endswith("all.css"))
    response = empty.get(address, headers={"Accept-Encoding": "gzip"})
    assert response.headers["Content-Encoding"] == "gzip"
    assert gzip.decompress(response.data) == empty.get(address).data
    sheets = list((PROJECT / "static").glob("*.css"))
    assert {path.stem for path in sheets} == set(SHEETS)
    whole = empty.get(address).text
    for path in sheets:
        last = re.findall(r"\.[a-z][a-z-]+", path.read_text())[-1]
        assert last in whole, path.name


def test_the_scripts_go_out_whole(empty: FlaskClient) -> None:
    sent = empty.get(next(one for one in addresses(empty) if one.endswith("all.js"))).text
    folder = PROJECT / "static" / "js"
    for path in folder.rglob("*.js"):
        assert f'modules["{path.relative_to(folder).as_posix()}"] =' in sent
    assert "has_horizon" in sent


def test_an_address_of_another_version_gives_the_file_but_is_not_kept(empty: FlaskClient) -> None:
    response = empty.get("/static/v-000000000000/all.css", headers=BROWSER)
    assert (response.status_code, response.headers["Cache-Control"]) == (200, "no-cache")
    known = response.headers["ETag"]
    again = empty.get("/static/v-000000000000/all.css", headers=BROWSER | {"If-None-Match": known})
    assert again.status_code == 304


@pytest.mark.parametrize("path", ["../settings.json", "js/../../app.py", "nothing.js", "base.css", "%2e%2e/app.py"])
def test_nothing_else_is_served(empty: FlaskClient, path: str) -> None:
    assert empty.get(f"/static/v-0/{path}").status_code == 404


def test_pages_and_the_api_are_never_compressed(client: FlaskClient) -> None:
    conversation = ask(client)["conversation_id"]
    for path in ("/", f"/conversations/{conversation}", "/settings", "/documents", "/api/settings", "/readyz"):
        response = client.get(path, headers=BROWSER | PAGE)
        assert len(response.data) > 20
        assert "Content-Encoding" not in response.headers, path


def test_the_version_is_another_one_when_any_file_changes() -> None:
    before = version_of({"js/a.js": b"one"})
    assert version_of({"js/a.js": b"one"}) == before
    assert len({before, version_of({"js/a.js": b"two"}), version_of({"js/b.js": b"one"})}) == 3


def test_a_browser_that_shows_an_answer_of_the_api_gets_the_icon(client: FlaskClient) -> None:
    with client.get("/favicon.ico") as response:
        assert (response.status_code, response.mimetype) == (200, "image/svg+xml")
