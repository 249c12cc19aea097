"""Everything by the keyboard: shortcuts and their list, the list of conversations, the drawer."""

import re

import pytest
from playwright.sync_api import Page, expect

from tests.browser.lists import fill, row
from tests.browser.talk import ask_many
from tests.testkit.server_process import ServerProcess

SEARCH = "Search conversations"


@pytest.mark.shared
def test_every_shortcut_stands_in_the_list_and_has_something_to_do(page: Page) -> None:
    page.goto("/")
    page.get_by_role("button", name="Keyboard shortcuts").click()
    dialog = page.get_by_role("dialog", name="Keyboard shortcuts")
    listed = dialog.locator("dd[data-action]")
    actions = listed.evaluate_all("all => all.map((one) => one.dataset.action).filter(Boolean)")
    assert all(listed.evaluate_all("all => all.map((one) => one.previousElementSibling.textContent)"))
    page.keyboard.press("Escape")
    expect(dialog).to_be_hidden()
    expect(page.get_by_role("button", name="Keyboard shortcuts")).to_be_focused()
    known = page.evaluate(
        """async () => {
            const { modules } = await import(document.querySelector("script[type=module]").src);
            return Object.keys(modules["shell/shortcuts.js"].actions);
        }"""
    )
    assert set(actions) == set(known)


@pytest.mark.every_time
@pytest.mark.shared
def test_keys_search_begin_a_command_and_show_the_shortcuts_but_not_while_typing(page: Page) -> None:
    page.goto("/")
    expect(page.locator("html.scripted")).to_be_attached()
    page.keyboard.press("Control+Shift+S")
    expect(page.get_by_label(SEARCH)).to_be_hidden()
    page.keyboard.press("Control+k")
    expect(page.get_by_label(SEARCH)).to_be_focused()
    page.get_by_label(SEARCH).blur()
    page.keyboard.press("/")
    box = page.get_by_label("Your question")
    expect(box).to_have_value("/")
    expect(page.get_by_role("option", name="/clear-history Hide")).to_be_visible()
    box.fill("")
    box.press_sequentially("Why? / n")
    expect(box).to_have_value("Why? / n")
    dialog = page.locator("#shortcuts")
    expect(dialog).to_be_hidden()
    box.blur()
    page.keyboard.press("?")
    expect(dialog).to_be_visible()
    page.keyboard.press("Control+k")
    expect(page.get_by_label(SEARCH)).not_to_be_focused()


def test_one_goes_from_turn_to_turn_and_from_conversation_to_conversation(page: Page, server: ServerProcess) -> None:
    fill(server, 3)
    ask_many(page, 2)
    page.get_by_label("Your question").blur()
    page.keyboard.press("Alt+ArrowUp")
    page.keyboard.press("Alt+ArrowUp")
    expect(page.locator("#turn-1")).to_be_focused()
    page.keyboard.press("Alt+ArrowDown")
    expect(page.locator("#turn-2")).to_be_focused()
    page.keyboard.press("Alt+PageDown")
    expect(page).to_have_url(re.compile("/conversations/1$"))
    expect(page.locator("html.scripted")).to_be_attached()
    page.keyboard.press("Control+Shift+O")
    expect(page).to_have_url(re.compile(r":\d+/$"))


def test_arrows_go_through_the_list_and_only_one_row_takes_part_in_tabbing(page: Page, server: ServerProcess) -> None:
    fill(server, 5)
    page.goto("/conversations/2")
    expect(page.locator("#conversations a[tabindex='0']")).to_have_count(1)
    row(page, "Talk 2").locator("a").focus()
    page.keyboard.press("ArrowDown")
    expect(row(page, "Talk 3").locator("a")).to_be_focused()
    page.keyboard.press("End")
    expect(row(page, "Talk 5").locator("a")).to_be_focused()
    page.keyboard.press("ArrowDown")
    expect(row(page, "Talk 5").locator("a")).to_be_focused()
    page.keyboard.press("Home")
    expect(row(page, "Talk 1").locator("a")).to_be_focused()
    expect(page.locator("#conversations a[tabindex='0']")).to_have_text(["Talk 1"])
    page.keyboard.press("Tab")
    expect(page.get_by_role("button", name="Actions for Talk 1")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.get_by_role("menuitem", name="Rename")).to_be_focused()
    page.keyboard.press("ArrowUp")
    expect(page.get_by_role("menuitem", name="Delete")).to_be_focused()
    page.keyboard.press("Escape")
    expect(page.get_by_role("button", name="Actions for Talk 1")).to_be_focused()
    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="Documents", exact=True)).to_be_focused()


@pytest.mark.shared
def test_the_drawer_takes_the_focus_and_gives_it_back_and_escape_closes_what_is_on_top_first(page: Page) -> None:
    page.goto("/")
    link = page.get_by_role("link", name="Documents", exact=True).first
    link.focus()
    page.keyboard.press("Enter")
    drawer, dialog = page.locator("#drawer"), page.locator("#shortcuts")
    expect(drawer.get_by_role("heading", name="Documents")).to_be_visible()
    expect(drawer).to_be_focused()
    page.keyboard.press("?")
    expect(dialog).to_be_visible()
    page.keyboard.press("Escape")
    expect(dialog).to_be_hidden()
    expect(drawer).to_be_visible()
    page.keyboard.press("Escape")
    expect(drawer).to_be_hidden()
    expect(link).to_be_focused()
    page.keyboard.press("Control+Shift+D")
    expect(drawer.get_by_role("heading", name="Documents")).to_be_visible()
    drawer.get_by_role("button", name="Close").click()
    expect(drawer).to_be_hidden()


def test_the_drawer_is_made_wider_and_stays_so(page: Page) -> None:
    page.goto("/")
    page.get_by_role("link", name="Documents", exact=True).first.click()
    edge = page.get_by_role("separator", name="Panel width")
    expect(edge).to_have_attribute("aria-valuenow", "480")
    edge.press("ArrowLeft")
    expect(edge).to_have_attribute("aria-valuenow", "512")
    edge.press("Home")
    expect(edge).to_have_attribute("aria-valuenow", "320")
    edge.press("ArrowRight")
    expect(edge).to_have_attribute("aria-valuenow", "320")
    edge.press("End")
    expect(edge).to_have_attribute("aria-valuenow", "896")
    edge.press("ArrowRight")
    expect(edge).to_have_attribute("aria-valuenow", "864")
    page.reload()
    page.get_by_role("link", name="Documents", exact=True).first.click()
    expect(edge).to_have_attribute("aria-valuenow", "864")


def test_on_a_phone_the_list_holds_the_keyboard_until_it_is_closed(page: Page, server: ServerProcess) -> None:
    fill(server, 2)
    page.set_viewport_size({"width": 390, "height": 844})
    page.goto("/conversations/1")
    bar = page.locator(".bar")
    assert bar.evaluate("one => one.offsetHeight") <= 48
    expect(bar).to_contain_text("Talk 1")
    sidebar = page.locator("#sidebar")
    expect(sidebar).to_be_hidden()
    page.get_by_role("button", name="Menu").click()
    expect(sidebar).to_be_focused()
    for _ in range(20):
        page.keyboard.press("Tab")
        inside = "() => document.activeElement === document.body || document.activeElement.closest('#sidebar') !== null"
        assert page.evaluate(inside)
    page.keyboard.press("Escape")
    expect(sidebar).to_be_hidden()
    expect(page.get_by_role("button", name="Menu")).to_be_focused()
    page.get_by_role("button", name="Menu").click()
    page.mouse.click(380, 400)
    expect(sidebar).to_be_hidden()
    page.get_by_role("button", name="Menu").click()
    row(page, "Talk 2").locator("a").click()
    expect(page).to_have_url(re.compile("/conversations/2$"))
    expect(sidebar).to_be_hidden()


def test_on_a_phone_the_drawer_is_a_sheet_that_back_closes(page: Page, server: ServerProcess) -> None:
    fill(server, 1)
    page.set_viewport_size({"width": 390, "height": 844})
    page.goto("/conversations/1")
    page.get_by_role("button", name="Menu").click()
    page.get_by_role("link", name="Documents", exact=True).click()
    drawer = page.locator("#drawer")
    expect(drawer.get_by_role("heading", name="Documents")).to_be_visible()
    expect(page.locator("#sidebar")).to_be_hidden()
    assert drawer.bounding_box() == {"x": 0, "y": 0, "width": 390, "height": 844}
    page.go_back()
    expect(drawer).to_be_hidden()
    expect(page).to_have_url(re.compile("/conversations/1$"))


def test_the_list_is_folded_away_and_stays_so(page: Page) -> None:
    page.goto("/")
    page.get_by_role("button", name="Hide sidebar").click()
    expect(page.locator("#sidebar")).to_be_hidden()
    expect(page.get_by_role("button", name="Menu")).to_be_focused()
    page.reload()
    expect(page.locator("#sidebar")).to_be_hidden()
    page.get_by_role("button", name="Menu").click()
    expect(page.locator("#sidebar")).to_be_visible()
    page.reload()
    expect(page.locator("#sidebar")).to_be_visible()


def test_the_last_answer_is_copied_by_its_own_button(page: Page) -> None:
    page.goto("/")
    expect(page.locator("html.scripted")).to_be_attached()
    page.evaluate(
        """() => {
            for (const name of ["first", "last"]) {
                const button = document.createElement("button");
                button.dataset.copyAnswer = "";
                button.addEventListener("click", () => { document.title = name; });
                document.getElementById("transcript").append(button);
            }
        }"""
    )
    page.keyboard.press("Control+Shift+C")
    expect(page).to_have_title("last")
