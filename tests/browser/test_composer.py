"""The composer: a box that grows, commands with completion, the gauge below it."""

import re

import pytest
from playwright.sync_api import Page, expect

from tests.browser.talk import above, ask_many, dimmed, say
from tests.testkit.server_process import ServerProcess
from tests.testkit.stub_model import StubModel


def test_the_box_grows_with_its_text_and_shrinks_again(page: Page) -> None:
    page.goto("/")
    box = page.get_by_label("Your question")
    low = box.evaluate("box => box.clientHeight")
    box.fill("one\ntwo\nthree\nfour\nfive")
    expect.soft(box).to_be_focused()
    page.wait_for_function("low => document.getElementById('question').clientHeight > 2 * low", arg=low)
    box.fill("\n" * 200)
    assert box.evaluate("box => box.clientHeight < innerHeight / 2")
    box.fill("")
    page.wait_for_function("low => document.getElementById('question').clientHeight === low", arg=low)


@pytest.mark.parametrize("width", [390, 1280])
@pytest.mark.shared
def test_a_word_without_end_pushes_nothing_off_the_page(page: Page, width: int) -> None:
    page.set_viewport_size({"width": width, "height": 844})
    page.goto("/")
    page.get_by_label("Your question").fill("x" * 600)
    button = page.get_by_role("button", name="Ask", exact=True).bounding_box()
    assert button is not None
    assert button["x"] + button["width"] <= width


def test_on_a_phone_the_empty_composer_leaves_most_of_the_screen(page: Page) -> None:
    page.set_viewport_size({"width": 390, "height": 844})
    ask_many(page, 1)
    expect(page.locator("#window summary")).to_be_visible()
    place = page.locator(".composer-area").bounding_box()
    assert place is not None
    assert place["height"] <= 0.15 * 844
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert page.locator("#main").evaluate("main => main.scrollWidth <= main.clientWidth")


@pytest.mark.settings(MODEL_CONTEXT_TOKENS="4096")
def test_the_gauge_tells_each_part_of_the_next_question(page: Page, server: ServerProcess) -> None:
    ask_many(page, 1)
    view = server.call("GET", "/api/conversations/1")[1]["view"]["tokens"]
    sent = server.call("GET", "/api/conversations/1/turns")[1]["turns"][0]["history"]["tokens"]
    total = view["total"] + sent["passages"]
    gauge = page.locator(".gauge")
    expect(gauge.locator("button")).to_have_text(re.compile(f"About {total:,} of 4,096 tokens"))
    expect(gauge.locator(".figures")).to_be_hidden()
    gauge.locator("button").click()
    rows = gauge.get_by_role("row")
    expect(rows).to_have_text(
        [
            re.compile(rf"instructions\s*{view['system']}"),
            re.compile(rf"earlier turns\s*{view['history']}"),
            re.compile(rf"passages same as last answer\s*{sent['passages']:,}"),
            re.compile(rf"free\s*{4096 - total:,}"),
            re.compile(rf"total\s*{total:,} of 4,096"),
        ]
    )
    page.keyboard.press("Escape")
    page.mouse.move(0, 0)
    expect(gauge.locator(".figures")).to_be_hidden()
    label = f"Estimated tokens: instructions {view['system']}, earlier turns {view['history']}"
    expect(gauge.locator(".tokens-bar")).to_have_attribute("aria-label", re.compile(label))


@pytest.mark.settings(MODEL_CONTEXT_TOKENS="4096")
@pytest.mark.parametrize(
    ("width", "height", "size"),
    [(640, 400, "100%"), (640, 844, "200%"), pytest.param(1280, 800, "200%", marks=pytest.mark.long)],
)
def test_large_letters_leave_the_row_below_the_box_whole(page: Page, width: int, height: int, size: str) -> None:
    page.set_viewport_size({"width": width, "height": height})
    ask_many(page, 1)
    page.evaluate("size => document.documentElement.style.setProperty('font-size', size)", size)
    for part in ("#window summary", ".gauge button"):
        expect(page.locator(part)).to_be_in_viewport(ratio=1)
    page.locator(".gauge button").focus()
    figures = page.locator(".gauge .figures")
    expect(figures).to_be_in_viewport(ratio=1)
    assert figures.evaluate("box => box.scrollWidth <= box.clientWidth")
    words, note = (page.locator(f".gauge tr[data-part=passages] {part}") for part in (".part-words", "small"))
    lines = "part => [...part.getClientRects()].map((line) => Math.round(line.left))"
    assert min(note.evaluate(lines)) >= min(words.evaluate(lines))


@pytest.mark.settings(MODEL_CONTEXT_TOKENS="4096")
def test_the_gauge_grows_with_the_question_as_it_is_typed(page: Page, server: ServerProcess) -> None:
    ask_many(page, 1)
    part = page.locator(".gauge .tokens-bar .part-question")
    row = page.locator(".gauge tr[data-part=question] td")
    expect(part).to_have_attribute("width", "0%")
    box = page.get_by_label("Your question")
    question = "What, then, is the answer to all of the questions that were asked before? " * 4
    box.fill(question)
    expect(part).not_to_have_attribute("width", "0%")
    typed = int(row.text_content() or "0")
    # The script's estimate is the server's: what is sent later shows the same figure.
    box.press("Enter")
    expect(page.locator("#turn-2.completed")).to_be_visible()
    counted = server.call("GET", "/api/conversations/1/turns")[1]["turns"][1]["history"]["tokens"]["question"]
    assert abs(typed - counted) <= 2
    expect(part).to_have_attribute("width", "0%")


def test_commands_never_reach_the_model(page: Page, stub: StubModel) -> None:
    ask_many(page, 1)
    asked = len(stub.requests)
    for number, command in enumerate(("/help", "/history", "/clear", "/undo", "/reset", "/nothing"), 1):
        say(page, command)
        if command == "/nothing":
            expect(page.locator("#composer-error")).to_contain_text("Unknown command")
        else:
            expect(page.locator(".result:not(.waiting)")).to_have_count(number)
    assert len(stub.requests) == asked
    page.locator(".result .dismiss").first.click()
    expect(page.locator(".result")).to_have_count(4)
    expect(page.get_by_label("Your question")).to_be_focused()


@pytest.mark.every_time
@pytest.mark.shared
def test_commands_are_carried_out_in_place_and_are_no_turns(page: Page, server: ServerProcess) -> None:
    conversation = ask_many(page, 2)
    box = page.get_by_label("Your question")
    box.press_sequentially("/c")
    choices = page.get_by_role("listbox", name="Suggestions").get_by_role("option")
    expect(choices).to_have_count(3)
    expect(choices.first).to_have_attribute("aria-selected", "true")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    expect(box).to_have_value("/clear")
    expect(choices.first).to_be_hidden()
    page.keyboard.press("Enter")
    result = page.locator(".result").last
    expect(result.get_by_role("status")).to_contain_text("Every turn is still saved. Type /undo to bring them back.")
    expect(page.locator("#turn-1")).to_be_hidden()
    expect(page.locator(".horizon .sentence")).to_have_text("0 of 2 earlier turns (2 from before you started over)")
    assert above(page, ".horizon", ".result")
    page.get_by_role("button", name="Show 2 earlier turns").click()
    expect(page.locator("#turn-1")).to_be_visible()
    assert dimmed(page) == ["turn-1", "turn-2"]
    say(page, "/undo")
    expect(page.locator(".result").last).to_contain_text("The model sees what it saw before you started over.")
    expect(page.locator(".horizon")).to_have_count(0)
    say(page, "/undo")
    nothing = f"There is nothing to undo in conversation {conversation}."
    expect(page.locator("#composer-error")).to_have_text(nothing)
    expect(box).to_have_value("/undo")
    expect(choices.last).to_be_hidden()
    say(page, "/nothing")
    expect(page.locator("#composer-error")).to_contain_text('Unknown command "/nothing".')
    box.press("End")
    expect(page.locator("#composer-error")).to_be_visible()
    box.press("Backspace")
    expect(page.locator("#composer-error")).to_be_hidden()
    assert server.call("GET", f"/api/conversations/{conversation}")[1]["turns"] == 2


def test_on_the_start_page_the_suggestions_cover_the_hint_below_the_box(page: Page) -> None:
    page.goto("/")
    page.get_by_label("Your question").press_sequentially("/")
    expect(page.locator("#commands")).to_be_visible()
    assert page.evaluate("""() => {
        const { left, right, top, bottom } = document.querySelector(".slash-hint").getBoundingClientRect();
        return document.elementFromPoint((left + right) / 2, (top + bottom) / 2).closest("#commands") !== null;
    }""")


def test_enter_carries_out_the_only_command_that_fits_and_completes_the_best_of_several(page: Page) -> None:
    ask_many(page, 1)
    box = page.get_by_label("Your question")
    chosen = page.locator("#commands [aria-selected=true]")
    box.press_sequentially("/hi")
    expect(chosen).to_have_attribute("data-command", "/history")
    page.keyboard.press("Enter")
    expect(page.locator(".result")).to_contain_text("1 turn.")
    expect(box).to_have_value("")
    box.press_sequentially("/h")
    page.keyboard.press("ArrowUp")
    expect(chosen).to_have_attribute("data-command", "/help")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    expect(box).to_have_value("/history")
    expect(page.locator("#commands")).to_be_hidden()
    expect(page.locator(".result")).to_have_count(1)
    box.fill("/hist")
    page.keyboard.press("Tab")
    expect(box).to_have_value("/history")


def test_a_command_typed_in_full_is_carried_out_though_another_begins_with_it(page: Page) -> None:
    ask_many(page, 1)
    page.get_by_label("Your question").press_sequentially("/clear")
    expect(page.locator("#commands [aria-selected=true]")).to_have_attribute("data-command", "/clear")
    page.keyboard.press("Enter")
    expect(page.locator(".result .command code")).to_have_text("/clear")


def test_shift_and_enter_begin_a_new_line_though_a_command_is_chosen(page: Page) -> None:
    page.goto("/")
    box = page.get_by_label("Your question")
    box.press_sequentially("/hi")
    page.keyboard.press("Shift+Enter")
    expect(box).to_have_value("/hi\n")
