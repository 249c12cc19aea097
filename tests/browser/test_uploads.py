"""Files on their way into the library: several at once, with what became of each, and what a person can do about it."""

import contextlib
from pathlib import Path

import pytest
from playwright.sync_api import Error, FilePayload, Locator, Page, Route, expect

from tests.extraction.archives import archive
from tests.testkit.server_process import ServerProcess
from tests.testkit.stub_model import Reply, StubModel


def a_file(name: str, content: str | bytes) -> FilePayload:
    content = content.encode() if isinstance(content, str) else content
    return {"name": name, "mimeType": "application/octet-stream", "buffer": content}


def choose(page: Page, *files: FilePayload) -> None:
    page.get_by_label("Add documents").set_input_files(list(files))


def item(page: Page, name: str) -> Locator:
    return page.get_by_role("region", name="Uploads").get_by_role("listitem").filter(has_text=name)


def drop(page: Page, *paths: Path) -> None:
    session = page.context.new_cdp_session(page)
    dragged = {"items": [], "files": [str(path) for path in paths], "dragOperationsMask": 1}
    for kind in ("dragEnter", "dragOver", "drop"):
        session.send("Input.dispatchDragEvent", {"type": kind, "x": 600, "y": 400, "data": dragged})


@pytest.mark.every_time
@pytest.mark.own_window
def test_chosen_and_dropped_files_are_added_and_those_that_failed_are_told_of(page: Page, tmp_path: Path) -> None:
    page.clock.install()
    page.goto("/documents")
    page.locator(".add > summary").click()
    page.get_by_label("Tags (optional)").fill("birds, 2024")
    geese = [a_file(f"{n}.txt", f"Geese number {n}.") for n in range(1, 3)]
    choose(page, *geese, a_file("program", b"\x7fELF\0\0\0"), a_file("blank.txt", " \n"))
    uploads = page.get_by_role("region", name="Uploads")
    expect(uploads.get_by_role("status")).to_have_text("2 files added, 2 failed")
    expect(uploads.get_by_role("listitem")).to_have_count(0)  # Done, it is one line; what failed is a click away.
    uploads.get_by_text("2 files added, 2 failed").click()
    expect(uploads.get_by_role("listitem")).to_have_count(2)
    expect(item(page, "program").locator(".reason")).to_contain_text('"program" is a program')
    expect(item(page, "blank.txt").locator(".reason")).to_have_text("There is no text in this file.")
    # Sending either once more gives the same.
    expect(item(page, "program").get_by_role("button")).to_have_count(0)
    expect(item(page, "blank.txt").get_by_role("button")).to_have_count(0)
    row = page.locator("#library tr", has=page.get_by_role("link", name="2.txt", exact=True))
    expect(row.locator(".tag")).to_have_text(["2024", "birds"])
    page.clock.fast_forward(60_000)
    expect(uploads.get_by_role("listitem")).to_have_count(2)  # What failed stays until somebody has seen it.
    uploads.get_by_role("button", name="Close").click()
    expect(uploads).to_have_count(0)
    choose(page, geese[0], {**geese[1], "name": "other.txt"})
    uploads.get_by_text("2 already in your library").click()
    expect(uploads.get_by_role("listitem")).to_have_count(1)
    expect(item(page, "other.txt").locator(".reason")).to_have_text("Already in your library as 2.txt.")
    uploads.get_by_role("button", name="Close").click()
    (tmp_path / "dropped.txt").write_text("Geese that were dropped.")
    drop(page, tmp_path / "dropped.txt")
    expect(uploads.get_by_role("status")).to_have_text("1 file added")
    page.mouse.move(5, 5)
    page.clock.fast_forward(60_000)
    expect(uploads).to_have_count(0)


def test_a_dropped_folder_gives_its_files_without_the_hidden_ones(page: Page, tmp_path: Path) -> None:
    folder, empty = tmp_path / "notes", tmp_path / "nothing"
    (folder / "deep" / "er").mkdir(parents=True)
    empty.mkdir()
    for name in ("a.txt", "deep/b.txt", "deep/er/c.txt", ".hidden.txt"):
        (folder / name).write_text(f"What stands in {name}.")
    (folder / ".git").mkdir()
    (folder / ".git" / "d.txt").write_text("Hidden, too.")
    page.goto("/documents")
    drop(page, empty)
    expect(page.locator(".toast")).to_contain_text("No files found in what you dropped.")
    drop(page, folder)
    uploads = page.get_by_role("region", name="Uploads")
    expect(uploads.get_by_role("status")).to_have_text("3 files added")
    for name in ("a.txt", "b.txt", "c.txt"):
        expect(page.locator("#library").get_by_role("link", name=name, exact=True)).to_be_visible()
    expect(page.locator("#library")).not_to_contain_text("hidden")


@pytest.mark.own_window
def test_the_files_in_an_archive_take_its_place_in_the_list(page: Page) -> None:
    content = archive({"sea/gulls.txt": "Gulls nest.", "swans.txt": "Swans fly.", "film.mkv": b"\x1aE\xdf\xa3\0\0"})
    page.goto("/documents")
    page.locator(".add > summary").click()
    choose(page, a_file("birds.zip", content), a_file("geese.txt", "Geese graze."))
    uploads = page.get_by_role("region", name="Uploads")
    expect(uploads.get_by_role("status")).to_have_text("3 files added, 1 failed")
    uploads.get_by_text("3 files added, 1 failed").click()
    expect(uploads.get_by_role("listitem")).to_have_count(1)
    expect(item(page, "film.mkv").locator(".reason")).to_contain_text('"film.mkv" is audio or video')
    expect(item(page, "film.mkv").get_by_role("button")).to_have_count(0)
    row = page.locator("#library tr", has=page.get_by_role("link", name="gulls.txt", exact=True))
    expect(row.locator(".tag")).to_have_text(["birds", "sea"])


def test_a_chosen_folder_gives_its_files(page: Page, tmp_path: Path) -> None:
    folder = tmp_path / "notes"
    (folder / ".git").mkdir(parents=True)
    (folder / "a.txt").write_text("What stands in a.")
    (folder / ".git" / "b.txt").write_text("Hidden.")
    page.goto("/documents")
    page.get_by_label("Add a folder").set_input_files(folder)
    uploads = page.get_by_role("region", name="Uploads")
    expect(uploads.get_by_role("status")).to_have_text("1 file added")
    expect(page.locator("#library").get_by_role("link", name="a.txt", exact=True)).to_be_visible()


def take(route: Route) -> None:
    """Answer as the server does when it takes a file."""
    route.fulfill(status=202, json={"document_id": 7, "new": True, "state": "ready", "embedded": 1, "chunks": 1})


@pytest.mark.shared
def test_three_are_sent_at_once_one_or_all_can_be_cancelled_and_what_did_not_arrive_is_sent_again(page: Page) -> None:
    held: list[Route] = []
    released: list[bool] = []
    page.goto("/documents")
    page.route("**/api/documents", lambda route: take(route) if released else held.append(route))
    choose(page, *[a_file(f"{n}.txt", f"Geese number {n}.") for n in range(5)])
    uploads = page.get_by_role("region", name="Uploads")
    expect(uploads.get_by_role("status")).to_have_text("Adding 5 files")
    # Those that wait have no row; each that is sent has a bar.
    expect(uploads.locator(".file-name")).to_have_text(["0.txt", "1.txt", "2.txt"])
    expect(uploads.get_by_role("progressbar")).to_have_count(3)
    item(page, "0.txt").get_by_role("button", name="Cancel 0.txt").click()
    expect(uploads.locator(".file-name")).to_have_text(["1.txt", "2.txt", "3.txt"])
    expect(uploads.get_by_role("status")).to_have_text("Adding 4 files, 1 cancelled")
    released.append(True)
    for route in held:
        with contextlib.suppress(Error):  # One of them was given up.
            take(route)
    expect(uploads.get_by_role("status")).to_have_text("4 files added, 1 cancelled")
    released.clear()
    choose(page, a_file("6.txt", "Geese number 6."), a_file("7.txt", "Geese number 7."))
    expect(uploads.locator("li.sending")).to_have_count(2)
    uploads.get_by_role("button", name="Cancel all").click()
    expect(uploads.get_by_role("status")).to_have_text("4 files added, 3 cancelled")
    uploads.get_by_role("button", name="Close").click()
    page.unroute("**/api/documents")
    page.route("**/api/documents", lambda route: route.abort())
    choose(page, a_file("geese.txt", "Geese."))
    uploads.get_by_text("1 failed").click()
    expect(item(page, "geese.txt").locator(".reason")).to_contain_text("the server cannot be reached")
    page.unroute("**/api/documents")
    page.route("**/api/documents", take)
    item(page, "geese.txt").get_by_role("button", name="Retry").click()
    expect(uploads.get_by_role("status")).to_have_text("1 file added")


@pytest.mark.settings(EMBEDDER="endpoint:e")
def test_what_is_worked_on_is_shown_and_cancelled(page: Page, stub: StubModel) -> None:
    stub.embedding_replies.extend(Reply(status=503) for _ in range(100))
    page.goto("/documents")
    choose(page, a_file("geese.txt", "Geese."))
    geese = item(page, "geese.txt")
    expect(geese.locator(".state-word")).to_have_text("indexing 0 of 1")
    expect(geese.get_by_role("progressbar")).to_be_visible()
    geese.get_by_role("button", name="Cancel").click()
    expect(page.get_by_role("region", name="Uploads").get_by_role("status")).to_have_text("1 cancelled")


def test_the_same_content_chosen_twice_at_once_is_added_once_and_said(page: Page) -> None:
    page.goto("/documents")
    choose(page, a_file("a.txt", "Geese hiss."), a_file("b.txt", "Geese hiss."))
    status = page.get_by_role("region", name="Uploads").get_by_role("status")
    expect(status).to_have_text("1 file added, 1 already in your library")


@pytest.mark.parametrize("count", [100, pytest.param(500, marks=pytest.mark.long)])
def test_hundreds_of_files_do_not_freeze_the_page(page: Page, server: ServerProcess, count: int) -> None:
    page.goto("/documents")
    page.route("**/api/documents", take)
    page.evaluate(
        "() => { window.frames = 0; const count = () => { window.frames += 1; requestAnimationFrame(count); };"
        " requestAnimationFrame(count); }"
    )
    choose(page, *[a_file(f"{n}.txt", "Geese.") for n in range(count)])
    uploads = page.get_by_role("region", name="Uploads")
    expect(uploads.get_by_role("status")).to_have_text(f"{count} files added", timeout=90_000)
    assert page.evaluate("window.frames") > 30  # A frozen page draws none while it works.


@pytest.mark.parametrize("size", [(390, 844), (1280, 800)])
@pytest.mark.shared
def test_the_list_of_uploads_covers_neither_the_question_nor_a_row(page: Page, size: tuple[int, int]) -> None:
    page.set_viewport_size({"width": size[0], "height": size[1]})
    page.goto("/documents")
    choose(page, *[a_file(f"{n}.bin", b"\x7fELF\0\0\0") for n in range(6)])
    uploads = page.get_by_role("region", name="Uploads")
    expect(uploads.get_by_role("status")).to_have_text("6 failed")
    main, strip = page.locator("main").bounding_box(), uploads.bounding_box()
    assert main is not None
    assert strip is not None
    assert main["y"] + main["height"] <= strip["y"] + 1
    assert page.evaluate("document.scrollingElement.scrollWidth <= innerWidth")
