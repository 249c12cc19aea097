"""An answer as it streams: finished blocks are left alone, nothing flickers, nothing that was seen goes away."""

import pytest
from playwright.sync_api import Page, expect

from tests.browser.talk import say
from tests.testkit.server_process import ServerProcess
from tests.testkit.stub_model import Reply, StubModel
from tests.web.markdown.test_streamed import WHOLE


def watch(page: Page) -> None:
    """Note every state of the answer in which fewer letters were to be seen than before, or the marks of a table.

    The heading is kept as soon as a paragraph stands below it.
    """
    page.evaluate(
        """() => {
            window.trouble = [];
            let longest = 0;
            new MutationObserver(() => {
                const answer = document.querySelector("#turn-1 .answer");
                if (!answer) return;
                window.heading ??= answer.querySelector(":scope > h1:has(+ p)");
                const copy = answer.cloneNode(true);
                for (const one of copy.querySelectorAll(".code-bar")) one.remove();
                const letters = copy.textContent.replace(/[^\\p{L}\\p{N}]/gu, "").length;
                if (letters < longest) window.trouble.push(`${longest} -> ${letters}`);
                if (/\\|\\s*-/.test(copy.textContent)) window.trouble.push("a table as text");
                longest = Math.max(longest, letters);
            }).observe(document.getElementById("transcript"), { childList: true, subtree: true });
        }"""
    )


@pytest.mark.shared
def test_nothing_that_was_seen_goes_away_or_is_drawn_again_and_no_table_is_text_at_first(
    page: Page, stub: StubModel
) -> None:
    stub.default = Reply(WHOLE, pieces=[WHOLE[n : n + 11] for n in range(0, len(WHOLE), 11)], seconds_between=0.03)
    page.goto("/")
    watch(page)
    say(page, "Why?")
    answer = page.locator("#turn-1.completed .answer")
    answer.wait_for()
    expect(answer.locator("table")).to_have_count(2)
    assert page.evaluate("window.trouble") == []
    assert page.evaluate("window.heading.isConnected") is True
    expect(answer.locator("code.math").first).to_have_text("$a_1 * b_1$")
    expect(answer.locator("h1")).to_have_text("What it says")


def test_what_is_selected_in_a_finished_block_stays_selected(
    page: Page, stub: StubModel, server: ServerProcess
) -> None:
    stub.default = Reply("The first block.\n\n" + "word " * 3000, seconds_between=0.05)
    page.goto("/")
    say(page, "Why?")
    expect(page.locator(".answer > p")).to_have_count(2)
    page.evaluate("getSelection().selectAllChildren(document.querySelector('.answer > p'))")
    expect(page.locator(".answer > p").last).to_contain_text("word " * 60)
    assert page.evaluate("getSelection().toString()") == "The first block."
    server.call("POST", "/api/turns/1/stop")  # A click would undo the selection by itself.
    expect(page.locator("#turn-1.stopped .seen")).to_be_visible()
    assert page.evaluate("getSelection().toString()") == "The first block."


def test_a_model_that_is_silent_is_not_said_to_write(page: Page, stub: StubModel) -> None:
    stub.default = Reply("Five.", hang_at=0)
    page.goto("/")
    say(page, "Why?")
    state = page.locator("#turn-1 .state")
    expect(state).to_have_text("Waiting for the first words.")
    page.reload()
    expect(state).to_have_text("Waiting for the first words.")
    page.get_by_role("button", name="Stop").click()
    expect(page.locator("#turn-1.stopped .seen")).to_be_visible()


def test_the_text_stays_where_it_is_when_the_answer_ends(page: Page, stub: StubModel) -> None:
    # So slow that the text fills no window, however late Stop is: a page that follows its end moves it.
    stub.default = Reply("word " * 300, seconds_between=0.2)
    page.goto("/")
    say(page, "Why?")
    answer = page.locator("#turn-1 .answer")
    expect(answer).to_contain_text("word word")
    expect(page.locator("#turn-1 .state")).to_have_text("Writing the answer.")
    place = "one => [one.getBoundingClientRect().left, one.getBoundingClientRect().top]"
    before = answer.evaluate(place)
    page.get_by_role("button", name="Stop").click()
    expect(page.locator("#turn-1.stopped .seen")).to_be_visible()
    assert answer.evaluate(place) == before


def test_a_wide_table_and_long_code_scroll_by_themselves(page: Page, stub: StubModel) -> None:
    row = "|" + " a_rather_long_cell |" * 12
    stub.default = Reply(f"{row}\n|{'---|' * 12}\n{row}\n\n```\n{'long ' * 100}\n```")
    page.set_viewport_size({"width": 390, "height": 800})
    page.goto("/")
    say(page, "Why?")
    expect(page.locator("#turn-1.completed .wide")).to_be_visible()
    assert page.locator("#main").evaluate("main => main.scrollWidth <= main.clientWidth")
    for scrolled in (".wide", ".code pre"):
        assert page.locator(f"#turn-1 {scrolled}").evaluate("box => box.scrollWidth > box.clientWidth")
