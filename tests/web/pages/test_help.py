"""The documentation that the program carries: every page is there, and every link in it leads somewhere."""

import re
from pathlib import Path
from urllib.parse import urljoin

import pytest
from flask.testing import FlaskClient

from deploy.help_site import write_site
from rag_assistant.web.pages.handbook import Handbook, slug_of

PROJECT = Path(__file__).resolve().parents[3]
LINK = re.compile(r'(?:href|src)="([^"]+)"')
ID = re.compile(r'\bid="([^"]+)"')


def broken(read, begin: str) -> tuple[list[str], set[str]]:  # type: ignore[no-untyped-def]
    """Follow every link from a page on; return those that lead nowhere, and all that was seen."""
    anchors: dict[str, set[str]] = {}
    links: list[tuple[str, str]] = []
    waiting = [begin]
    while waiting:
        address = waiting.pop()
        if address in anchors:
            continue
        html = read(address)
        anchors[address] = set(ID.findall(html or ""))
        if html is None:
            continue
        for link in LINK.findall(html):
            target = urljoin(address, link)
            if "/static/" not in target and target != "/" and not re.match(r"https?:|mailto:", target):
                links.append((address, target))
                waiting.append(target.partition("#")[0])
    lost = [
        f"{where} -> {target}"
        for where, target in links
        if (section := target.partition("#")[2]) and section not in anchors[target.partition("#")[0]]
    ]
    return lost, set(anchors)


def test_every_page_of_the_documentation_is_reached_and_every_link_leads_somewhere(empty: FlaskClient) -> None:
    def read(address: str) -> str | None:
        answer = empty.get(address)
        assert answer.status_code == 200, address
        return answer.text if answer.mimetype == "text/html" else None

    lost, seen = broken(read, "/help")
    assert lost == []
    files = {name.removesuffix(".md") for name in Handbook(PROJECT).names}
    assert {f"/help/{name}" for name in files - {"docs/README"}} | {"/help"} <= seen


def test_the_same_pages_are_a_site_of_plain_files(tmp_path: Path) -> None:
    names = write_site(tmp_path)

    def read(address: str) -> str | None:
        file = tmp_path / address.removeprefix("/")
        assert file.is_file(), address
        return file.read_text() if file.suffix == ".html" else None

    lost, seen = broken(read, "/index.html")
    assert lost == []
    assert {f"/{name}" for name in names} <= seen


def test_the_folder_that_a_wheel_carries_holds_only_what_is_shown() -> None:
    files = {path.relative_to(PROJECT).as_posix() for path in PROJECT.glob("docs/**/*") if path.is_file()}
    assert files <= Handbook(PROJECT).names


def test_nothing_but_the_documentation_is_there(empty: FlaskClient) -> None:
    for name in ("app", "docs/api.md", "docs/../app.py", "..%2f..%2fetc/passwd", "requirements.txt", "docs/nothing"):
        assert empty.get(f"/help/{name}").status_code == 404, name


def test_only_our_own_files_beside_the_folder_are_part_of_it(tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    for name in ("docs/one.md", "README.md", "PRIVATE.md"):
        (tmp_path / name).write_text("# A title")
    assert Handbook(tmp_path).names == {"docs/one.md", "README.md"}


def test_the_documentation_asks_for_no_other_host_and_runs_no_script(empty: FlaskClient) -> None:
    html = empty.get("/help").text
    assert "<script" not in html
    assert 'src="http' not in html
    assert "img-src 'self'" in empty.get("/help").headers["Content-Security-Policy"]


@pytest.mark.parametrize(
    ("heading", "slug"),
    [("A model of a file", "a-model-of-a-file"), ("(h) Memory", "h-memory"), ("`/readyz`, asked", "readyz-asked")],
)
def test_headings_have_the_addresses_that_they_have_elsewhere(heading: str, slug: str) -> None:
    assert slug_of(heading) == slug


def test_the_guide_comes_first_and_marks_the_open_page(empty: FlaskClient) -> None:
    front = empty.get("/help").text
    assert front.index("First steps") < front.index("API")
    assert 'aria-current="page"' in empty.get("/help/docs/guide/3-documents").text
