"""Watched folders and repositories: the open page follows what happens in them, and says how each of them is."""

import json
import re
import subprocess
from pathlib import Path

from playwright.sync_api import Locator, Page, expect

from tests.testkit.server_process import ServerProcess


def watch(server: ServerProcess, *sources: str) -> None:
    """Name the sources in settings.json, as a person would, and start the server again."""
    server.terminate()
    settings = {"document_sources": sources, "sources_interval_seconds": 1}
    Path(server.environment["SETTINGS_FILE"]).write_text(json.dumps(settings))
    server.start("/readyz")


def git(repository: Path, *words: str) -> None:
    author = ("-c", "user.name=Ann", "-c", "user.email=ann@example.org")
    subprocess.run(["git", *author, *words], cwd=repository, check=True, capture_output=True)


def a_repository(path: Path) -> Path:
    path.mkdir()
    git(path, "init", "--quiet")
    commit(path, "rules.md", "# Rules\n\nNobody runs on deck.")
    return path


def commit(repository: Path, name: str, text: str) -> None:
    (repository / name).write_text(text)
    git(repository, "add", "--all")
    git(repository, "commit", "--quiet", "-m", "Change a page")


def row(page: Page, name: str) -> Locator:
    return page.locator("#library tr", has=page.get_by_role("link", name=name, exact=True))


def link_of(page: Page, name: str) -> str:
    return row(page, name).get_by_role("link", name=name, exact=True).get_attribute("href") or ""


# What happens in them is shown in tests/documents/test_sources.py, that an open list follows it, below.
def test_the_open_page_follows_a_folder_and_a_repository(page: Page, server: ServerProcess, tmp_path: Path) -> None:
    folder, repository = tmp_path / "notes", a_repository(tmp_path / "handbook")
    folder.mkdir()
    (folder / "geese.txt").write_text("The keeper feeds seventeen geese.")
    (folder / "boats.txt").write_text("Green boats float.")
    page.goto("/documents")
    watch(server, str(folder), f"git+file://{repository}")
    for name in ("geese.txt", "boats.txt", "rules.md"):
        expect(row(page, name).locator(".document-state")).to_have_text("ready")
    page.get_by_text("Watched folders and repositories").click()
    states = page.locator(".origins li")
    expect(states).to_have_text([re.compile(r"/notes\s+2 files, checked"), re.compile(r"/handbook\s+1 file, checked")])

    boats, rules = link_of(page, "boats.txt"), link_of(page, "rules.md")
    (folder / "geese.txt").write_text("The keeper feeds eighteen swans, and no goose at all.")
    (folder / "boats.txt").rename(folder / "ships.txt")
    git(repository, "mv", "rules.md", "orders.md")
    commit(repository, "crew.md", "# Crew\n\nAnn cooks.")
    expect(row(page, "geese.txt").locator(".size")).to_have_text("53 bytes")
    expect(row(page, "boats.txt")).to_have_count(0)
    assert link_of(page, "ships.txt") == boats
    expect(row(page, "crew.md").locator(".document-state")).to_have_text("ready")
    expect(states.last).to_contain_text("2 files, checked ")
    assert link_of(page, "orders.md") == rules

    (folder / "ships.txt").unlink()
    expect(row(page, "ships.txt")).to_have_count(0)
    expect(states.first).to_contain_text("1 file, checked ")
    expect(states.first).to_be_visible()  # It stays open while it changes.


def test_an_open_list_in_which_nothing_happens_is_left_alone(page: Page, server: ServerProcess) -> None:
    page.goto("/")  # The first page tells the server in which time zone it is read.
    server.upload("geese.txt", "The keeper feeds seventeen geese.")
    page.goto("/documents")
    expect(row(page, "geese.txt").locator(".document-state")).to_have_text("ready")
    page.evaluate(
        """() => {
            const list = document.getElementById("documents");
            window.changed = [];
            window.firstRow = list.querySelector("tbody tr");
            const note = (records) => window.changed.push(...records.map((one) => one.target));
            const everything = { subtree: true, childList: true, attributes: true, characterData: true };
            new MutationObserver(note).observe(list, everything);
        }"""
    )
    with page.expect_response(lambda response: "/documents" in response.url) as asked:
        pass
    assert asked.value.status == 304
    assert page.evaluate("window.changed.map((one) => one.outerHTML)") == []
    server.upload("boats.txt", "Green boats float.")
    expect(row(page, "boats.txt").locator(".document-state")).to_have_text("ready")
    assert page.evaluate("window.firstRow.isConnected")
    assert not page.evaluate("window.changed.some((one) => window.firstRow.contains(one))")


def test_a_source_that_is_away_says_so_until_it_is_back(page: Page, server: ServerProcess, tmp_path: Path) -> None:
    folder, away = tmp_path / "notes", tmp_path / "unmounted"
    folder.mkdir()
    (folder / "geese.txt").write_text("The keeper feeds seventeen geese.")
    watch(server, str(folder))
    page.goto("/documents")
    expect(row(page, "geese.txt").locator(".document-state")).to_have_text("ready")
    reason = page.locator(".origins .reason")
    folder.rename(away)
    expect(reason).to_be_visible()
    expect(reason).to_have_text(f"There is no folder {folder}.")
    expect(row(page, "geese.txt").locator(".document-state")).to_have_text("ready")
    page.set_viewport_size({"width": 390, "height": 844})
    address = page.locator(".origins code").bounding_box()
    assert address is not None
    assert address["x"] + address["width"] <= 390  # A long path is broken, not cut off.
    summary = page.get_by_text("Watched folders and repositories")
    summary.click()
    checked = page.locator(".origins time")
    expect(checked).not_to_have_attribute("datetime", checked.get_attribute("datetime") or "")
    expect(reason).to_be_hidden()  # Who has closed it has read it.
    away.rename(folder)
    expect(reason).to_have_count(0)
