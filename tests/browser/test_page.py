"""The page as a person uses it."""

import re

import pytest
from playwright.sync_api import Page, expect

from tests.browser.shelf import upload
from tests.browser.talk import ask, ask_many, say
from tests.testkit.server_process import ServerProcess
from tests.testkit.stub_model import Reply, StubModel


@pytest.mark.every_time
@pytest.mark.shared
def test_a_question_is_answered_in_place_with_markdown_and_sources_and_gives_the_page_its_title_and_options(
    page: Page, stub: StubModel
) -> None:
    question = "How many earlier turns does the model see?"
    stub.default = Reply("It is **five**, see [1].\n\n| a | b |\n|---|---|\n| 1 | 2 |")
    page.goto("/")
    turn = ask(page, question, 1)
    expect(page).to_have_url(re.compile(r"/conversations/\d+$"))
    expect(page.get_by_role("heading", name=question)).to_be_visible()
    expect(page).to_have_title(f"{question} - Assistant")
    expect(turn.locator(".answer strong")).to_have_text("five")
    expect(turn.locator(".answer td").first).to_have_text("1")
    expect(page.locator("#conversations .title").first).to_have_text(question)
    expect(turn.locator(".sources a").first).to_be_visible()
    page.locator("#options > summary").click()
    expect(page.get_by_role("button", name="Delete conversation")).to_be_visible()


@pytest.mark.every_time
@pytest.mark.shared
def test_the_seventh_question_shows_the_notice_and_the_horizon(page: Page) -> None:
    ask_many(page, 6)
    ask(page, "Question 7", 7)
    expect(page.locator("#turn-7 .trimmed")).to_contain_text(
        "The model saw 5 of 6 earlier turns (1 over the turn limit)"
    )
    expect(page.locator("#turn-7 .trimmed code")).to_have_text("[History trimmed to last 5 turns]")
    expect(page.locator(".horizon .sentence")).to_have_text("5 of 7 earlier turns (2 over the turn limit)")
    order = page.locator("#transcript > *").evaluate_all("all => all.map(one => one.id || one.className)")
    assert order.index("horizon") == order.index("turn-3") - 1
    expect(page.locator(".turn.beyond")).to_have_count(2)
    drawn_by_script = page.locator(".horizon").inner_text()
    page.reload()
    assert page.locator(".horizon").inner_text() == drawn_by_script
    expect(page.locator(".turn.beyond")).to_have_count(2)


def test_stop_keeps_what_is_written(page: Page, stub: StubModel) -> None:
    stub.default = Reply("word " * 3000, seconds_between=0.05)
    page.goto("/")
    page.get_by_label("Your question").fill("Why?")
    page.keyboard.press("Enter")
    expect(page.locator(".answer")).to_contain_text("word word")
    page.get_by_role("button", name="Stop").click()
    expect(page.locator("#turn-1.stopped .answer")).to_contain_text("word word")
    expect(page.locator("#turn-1 .state")).to_have_text("Stopped.")


@pytest.mark.every_time
@pytest.mark.shared
def test_a_reload_in_the_middle_of_an_answer_loses_nothing(page: Page, stub: StubModel) -> None:
    words = " ".join(f"w{n}" for n in range(20))
    stub.default = Reply(words, seconds_between=0.15)
    page.goto("/")
    page.get_by_label("Your question").fill("Why?")
    page.keyboard.press("Enter")
    expect(page.locator(".answer")).to_contain_text("w3")
    page.reload()
    expect(page.locator("#turn-1.completed .answer")).to_have_text(words)


def test_a_restart_of_the_server_keeps_what_was_shown(page: Page, stub: StubModel, server: ServerProcess) -> None:
    stub.default = Reply(" ".join(f"w{n}" for n in range(500)), seconds_between=0.02)
    page.goto("/")
    page.get_by_label("Your question").fill("Why?")
    page.keyboard.press("Enter")
    expect(page.locator(".answer")).to_contain_text("w20")
    server.kill()
    shown = page.locator(".answer").inner_text()
    server.start()
    expect(page.locator("#turn-1.interrupted .error")).to_contain_text("Incomplete answer.")
    assert page.locator("#turn-1 .answer").inner_text().startswith(shown)


@pytest.mark.every_time
def test_a_failed_question_says_what_to_do_and_can_be_retried(page: Page, stub: StubModel) -> None:
    stub.default = Reply(status=401)
    page.goto("/")
    page.get_by_label("Your question").fill("Why?")
    page.keyboard.press("Enter")
    expect(page.locator("#turn-1.failed .error")).to_contain_text("asks for an API key (401). Set openai_api_key.")
    # A screen reader hears of it at once.
    expect(page.locator("#alarm")).to_contain_text("No answer.")
    stub.default = Reply("Because.")
    page.get_by_role("button", name="Retry").click()
    expect(page.locator("#turn-1.completed .answer")).to_have_text("Because.")


def test_where_the_model_fails_the_documents_are_quoted_instead(page: Page, stub: StubModel) -> None:
    stub.default = Reply(status=401)
    page.goto("/")
    say(page, "How large may a document be?")
    page.locator("#turn-1.failed").get_by_role("button", name="Quote my documents").click()
    expect(page.locator("#turn-1.completed .answer")).to_contain_text("The model did not answer")


@pytest.mark.every_time
def test_a_refused_question_goes_back_into_the_box_and_is_never_cut(
    page: Page, server: ServerProcess, stub: StubModel
) -> None:
    page.goto("/")
    box = page.get_by_label("Your question")
    say(page, "/clear")
    expect(page.locator("#composer-error")).to_have_text("There is no conversation yet. Ask a question first.")
    expect(box).to_have_value("/clear")
    say(page, "Goose. " * 2000)
    expect(page.locator(".composer .error").first).to_contain_text("14000 characters")
    assert box.input_value() == "Goose. " * 2000
    assert stub.requests == []
    server.kill()
    say(page, "A question that must not be lost")
    expect(page.locator("#composer-error")).to_contain_text("The server cannot be reached")
    expect(box).to_have_value("A question that must not be lost")
    expect(page.locator(".turn")).to_have_count(0)


def test_a_dropped_file_becomes_a_document_that_is_cited(page: Page, stub: StubModel) -> None:
    stub.default = Reply("Seventeen [1].")
    page.goto("/")
    page.evaluate(
        """() => {
            const files = new DataTransfer();
            files.items.add(new File(["The lighthouse keeper feeds seventeen geese."], "keeper.txt"));
            dispatchEvent(new DragEvent("drop", { dataTransfer: files, cancelable: true }));
        }"""
    )
    expect(page.locator(".uploads .headline")).to_have_text("1 file added")
    ask(page, "How many geese does the lighthouse keeper feed?", 1)
    source = page.locator("#turn-1 .sources a").first
    expect(source).to_have_text("1 keeper.txt")
    source.click()
    expect(page.locator("#drawer mark")).to_have_text("The lighthouse keeper feeds seventeen geese.")


def test_a_conversation_opens_at_its_latest_turn(page: Page, stub: StubModel) -> None:
    stub.default = Reply("word " * 400)
    page.goto("/")
    for number in range(1, 4):
        ask(page, f"Question {number}", number)
    expect(page.locator("#turn-3 .actions")).to_be_in_viewport()
    page.goto("/conversations/1")
    expect(page.locator("#turn-3 .actions")).to_be_in_viewport()


@pytest.mark.shared
def test_a_question_that_comes_too_early_stays_in_the_box_and_a_stopped_answer_can_be_had_anew(
    page: Page, stub: StubModel
) -> None:
    stub.default = Reply("word " * 3000, seconds_between=0.2)
    box, complaint = page.get_by_label("Your question"), page.locator("#composer-error")
    page.goto("/")
    say(page, "One")
    expect(page.locator(".answer")).to_contain_text("word word")
    box.fill("Two")
    page.keyboard.press("Enter")
    expect(page.locator("#composer-error.hint")).to_contain_text("Wait for the current answer to finish")
    expect(box).to_have_value("Two")
    page.get_by_role("button", name="Stop").click()
    expect(page.locator("#turn-1.stopped")).to_be_visible()
    expect(complaint).to_be_hidden()
    expect(box).to_have_value("Two")

    stub.default = Reply("All of it.")
    page.get_by_role("button", name="Regenerate").click()
    expect(page.locator("#turn-1.completed .answer")).to_have_text("All of it.")


def test_after_a_reload_too_a_question_that_comes_too_early_stays_in_the_box(page: Page, stub: StubModel) -> None:
    stub.default = Reply("word " * 3000, seconds_between=0.05)
    box, complaint = page.get_by_label("Your question"), page.locator("#composer-error")
    button, stop = page.get_by_role("button", name="Ask", exact=True), page.get_by_role("button", name="Stop")
    page.goto("/")
    say(page, "One")
    expect(page.locator("#turn-1 .answer")).to_contain_text("word word")
    page.reload()
    expect(stop).to_be_visible()
    expect(button).to_be_hidden()
    box.fill("Two")
    page.keyboard.press("Enter")
    expect(page.locator("#composer-error.hint")).to_contain_text("Wait for the current answer to finish")
    stop.click()
    expect(page.locator("#turn-1.stopped")).to_be_visible()
    expect(button).to_be_enabled()
    expect(complaint).to_be_hidden()
    expect(box).to_have_value("Two")


def test_everything_fits_on_a_phone(page: Page, server: ServerProcess) -> None:
    upload(server, "geese.txt", "Geese eat grass.")
    page.set_viewport_size({"width": 390, "height": 800})
    for path in ("/", "/documents"):
        page.goto(path)
        assert page.locator("#main").evaluate("main => main.scrollWidth <= main.clientWidth"), path
    page.locator(".menu > .more > summary").first.click()
    page.locator(".more[open]").get_by_role("button", name="Delete", exact=True).click(trial=True)
    assert page.locator("#main").evaluate("main => main.scrollWidth <= main.clientWidth")


@pytest.mark.every_time
@pytest.mark.shared
def test_the_stream_reader_gives_the_same_events_wherever_the_bytes_are_cut(page: Page) -> None:
    page.goto("/")
    differences = page.evaluate(
        r"""async () => {
            const { modules } = await import(document.querySelector("script[type=module]").src);
            const { EventReader } = modules["lib/sse.js"];
            const stream = "event: a\nid: 1\ndata: ß 世 👋🏽\n\n: c\n\r\ndata:x\r\ndata: y\r\n\r\nid: 3\r\rdata: z\n\n";
            const bytes = new TextEncoder().encode(stream);
            const read = (cuts) => {
                const events = [];
                const reader = new EventReader((event) => events.push(event));
                let start = 0;
                for (const cut of [...cuts, bytes.length]) { reader.feed(bytes.slice(start, cut)); start = cut; }
                return JSON.stringify(events);
            };
            const whole = read([]);
            let wrong = JSON.parse(whole).length === 3 ? 0 : 1000;
            for (let cut = 0; cut <= bytes.length; cut += 1) if (read([cut]) !== whole) wrong += 1;
            if (read([...bytes.keys()]) !== whole) wrong += 1;
            return wrong;
        }"""
    )
    assert differences == 0
