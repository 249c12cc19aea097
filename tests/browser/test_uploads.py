"""Files on their way into the library: several at once, with what became of each, and what a person can do about it."""

import contextlib
import re
from pathlib import Path

import pytest
from playwright.sync_api import Error, FilePayload, Locator, Page, Route, expect

from testkit.server_process import ServerProcess
from testkit.stub_model import Reply, StubModel


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


def test_choosing_files_adds_them_and_tells_what_became_of_each(page: Page) -> None:
    page.goto("/documents")
    page.get_by_label("Tags (optional)").fill("birds, 2024")
    geese = [a_file(f"{n}.txt", f"Geese number {n}.") for n in range(1, 4)]
    choose(page, *geese, a_file("program", b"\x7fELF\0\0\0"), a_file("blank.txt", " \n"))
    uploads = page.get_by_role("region", name="Uploads")
    expect(uploads.get_by_role("status")).to_have_text("3 documents ready, 2 failed", timeout=30_000)
    expect(item(page, "program").locator(".reason")).to_contain_text('"program" is a program')
    expect(item(page, "blank.txt").locator(".reason")).to_have_text("There is no text in this file.")
    expect(item(page, "2.txt").locator(".state-word")).to_have_text("ready")
    # What failed stands first; the server took blank.txt, so reading it once more may help.
    expect(uploads.locator(".file-name")).to_have_text([re.compile("program|blank.txt")] * 2 + [re.compile(".txt")] * 3)
    expect(item(page, "program").get_by_role("button")).to_have_count(0)
    expect(item(page, "blank.txt").get_by_role("button", name="Retry")).to_be_visible()
    starts = uploads.locator(".state-word").evaluate_all("all => all.map((one) => one.getBoundingClientRect().left)")
    assert len(set(starts)) == 1
    row = page.locator("#library tr", has=page.get_by_role("link", name="2.txt", exact=True))
    expect(row.locator(".tag")).to_have_text(["2024", "birds"])
    choose(page, geese[0])
    expect(item(page, "1.txt").last.locator(".state-word")).to_have_text("already added")
    uploads.get_by_role("button", name="Hide files").click()
    expect(item(page, "2.txt")).to_be_hidden()
    uploads.get_by_role("button", name="Close").click()
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
    expect(uploads.get_by_role("status")).to_have_text("3 documents ready", timeout=30_000)
    assert sorted(uploads.locator(".file-name").all_inner_texts()) == ["a.txt", "b.txt", "c.txt"]
    expect(page.locator("#library")).not_to_contain_text("hidden")


def test_a_chosen_folder_gives_its_files(page: Page, tmp_path: Path) -> None:
    folder = tmp_path / "notes"
    (folder / ".git").mkdir(parents=True)
    (folder / "a.txt").write_text("What stands in a.")
    (folder / ".git" / "b.txt").write_text("Hidden.")
    page.goto("/documents")
    page.get_by_label("Add a folder").set_input_files(folder)
    uploads = page.get_by_role("region", name="Uploads")
    expect(uploads.locator(".file-name")).to_have_text(["a.txt"])
    expect(uploads.get_by_role("status")).to_have_text("1 document ready", timeout=30_000)


def test_three_are_sent_at_once_and_one_can_be_cancelled_and_sent_again(page: Page) -> None:
    held: list[Route] = []
    released: list[bool] = []

    def hold(route: Route) -> None:
        if route.request.method == "POST" and not released:
            held.append(route)
        else:
            route.continue_()

    page.goto("/documents")
    page.route("**/api/documents", hold)
    choose(page, *[a_file(f"{n}.txt", f"Geese number {n}.") for n in range(5)])
    uploads = page.get_by_role("region", name="Uploads")
    expect(uploads.locator("li.sending")).to_have_count(3)
    expect(uploads.locator("li.waiting")).to_have_count(2)
    item(page, "4.txt").get_by_role("button", name="Cancel 4.txt").click()
    expect(item(page, "4.txt").locator(".state-word")).to_have_text("cancelled")
    item(page, "0.txt").get_by_role("button", name="Cancel 0.txt").click()
    expect(item(page, "0.txt").locator(".state-word")).to_have_text("cancelled")
    expect(item(page, "3.txt")).to_have_class("sending")
    released.append(True)
    for route in held:
        with contextlib.suppress(Error):  # One of them was given up.
            route.continue_()
    expect(uploads.locator("li.ready")).to_have_count(3, timeout=30_000)
    item(page, "0.txt").get_by_role("button", name="Retry 0.txt").click()
    expect(uploads.locator("li.ready")).to_have_count(4, timeout=30_000)


def test_a_file_that_did_not_arrive_says_so_and_is_sent_again(page: Page) -> None:
    page.goto("/documents")
    page.route("**/api/documents", lambda route: route.abort())
    choose(page, a_file("geese.txt", "Geese."))
    geese = item(page, "geese.txt")
    expect(geese.locator(".reason")).to_contain_text("the server cannot be reached")
    page.unroute("**/api/documents")
    geese.get_by_role("button", name="Retry").click()
    expect(geese.locator(".state-word")).to_have_text("ready", timeout=30_000)


@pytest.mark.settings(EMBEDDER="endpoint:e")
def test_what_is_worked_on_is_cancelled_and_read_again(page: Page, stub: StubModel) -> None:
    stub.embedding_replies.extend(Reply(status=503) for _ in range(100))
    page.goto("/documents")
    choose(page, a_file("geese.txt", "Geese."))
    geese = item(page, "geese.txt")
    expect(geese.locator(".state-word")).to_have_text("indexing 0 of 1")
    geese.get_by_role("button", name="Cancel").click()
    expect(geese.locator(".state-word")).to_have_text("cancelled")
    stub.embedding_replies.clear()
    geese.get_by_role("button", name="Retry").click()
    expect(geese.locator(".state-word")).to_have_text("ready", timeout=30_000)


@pytest.mark.parametrize("count", [100, pytest.param(500, marks=pytest.mark.long)])
def test_hundreds_of_files_do_not_freeze_the_page(page: Page, server: ServerProcess, count: int) -> None:
    page.goto("/documents")
    answer = '{"document_id": %d, "new": true, "state": "ready", "reason": null, "embedded": 1, "chunks": 1}'
    page.route(
        "**/api/documents",
        lambda route: route.fulfill(status=202, content_type="application/json", body=answer % 7),
    )
    page.evaluate(
        "() => { window.frames = 0; const count = () => { window.frames += 1; requestAnimationFrame(count); };"
        " requestAnimationFrame(count); }"
    )
    choose(page, *[a_file(f"{n}.txt", "Geese.") for n in range(count)])
    uploads = page.get_by_role("region", name="Uploads")
    expect(uploads.get_by_role("status")).to_have_text(f"{count} documents ready", timeout=90_000)
    assert uploads.get_by_role("listitem").count() == count
    assert page.evaluate("window.frames") > 30  # A frozen page draws none while it works.


@pytest.mark.parametrize("size", [(390, 844), (1280, 800)])
def test_the_list_of_uploads_covers_neither_the_question_nor_a_row(page: Page, size: tuple[int, int]) -> None:
    page.set_viewport_size({"width": size[0], "height": size[1]})
    page.goto("/documents")
    choose(page, *[a_file(f"{n}.txt", f"Geese number {n}.") for n in range(6)])
    uploads = page.get_by_role("region", name="Uploads")
    expect(uploads.get_by_role("status")).to_have_text(re.compile("6 documents ready"), timeout=30_000)
    main, strip = page.locator("main").bounding_box(), uploads.bounding_box()
    assert main is not None
    assert strip is not None
    assert main["y"] + main["height"] <= strip["y"] + 1
    assert page.evaluate("document.scrollingElement.scrollWidth <= innerWidth")
