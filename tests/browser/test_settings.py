"""The view of the settings: found, seen to change, set for a conversation, and the banner of a broken file."""

import json
import threading
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.browser.talk import ask, ask_many, window
from tests.testkit.server_process import ServerProcess
from tests.testkit.stub_model import StubModel


@pytest.fixture
def file(server: ServerProcess) -> Path:
    return Path(server.environment["SETTINGS_FILE"])


@pytest.mark.shared
def test_a_setting_is_found_as_one_types_and_tells_how_it_is_changed(page: Page, file: Path) -> None:
    page.goto("/settings")
    expect(page.locator(".settings")).to_contain_text(str(file))
    shown = page.locator(".setting:visible")
    page.get_by_label("Search settings").fill("history turns limit")
    expect(shown).to_have_count(0)
    expect(page.get_by_text("No settings found.")).to_be_visible()
    page.get_by_label("Search settings").fill("size of a document")
    expect(shown).to_have_count(1)
    one = page.locator("#setting-max_upload_mb")
    expect(one.locator("dl")).to_be_hidden()
    one.locator("summary").press("Enter")
    expect(one).to_contain_text("a whole number, 1 or more")
    expect(one).to_contain_text("from the next question")
    expect(one.locator(".line")).to_have_text('"max_upload_mb": 50')
    one.get_by_role("button", name="Copy").click()
    expect(one.locator("[data-copy-line]")).to_have_text("Copied")
    page.get_by_label("Search settings").fill("")
    page.wait_for_function("document.querySelectorAll('.setting:not([hidden])').length > 40")


def test_a_change_of_the_file_is_seen_at_once_and_a_broken_one_is_a_banner_until_it_is_mended(
    page: Page, file: Path
) -> None:
    page.goto("/settings")
    one = page.locator("#setting-max_history_turns")
    expect(one.locator(".value")).to_have_text("5")
    expect(one.locator(".origin")).to_have_text("default")
    file.write_text(json.dumps({"max_history_turns": 9}))
    expect(one.locator(".value")).to_have_text("9")
    expect(one.locator(".origin")).to_have_text("settings.json")
    expect(one.locator(".changed")).to_have_text("changed just now")
    expect(page.locator(".setting.new")).to_have_count(1)

    file.write_text('{\n  "max_history_turns": "ten"\n}')
    banner = page.locator("#banners .warning")
    expect(banner).to_contain_text('settings.json line 2: max_history_turns is "ten"; it must be a whole number')
    expect(banner).to_contain_text("The last good values stay in force.")
    expect(banner).to_contain_text(f"Fix it in {file}; changes load automatically.")
    file.write_text('{"max_history_turns": 4}')
    expect(banner).to_have_count(0)
    expect(one.locator(".value")).to_have_text("4")


@pytest.mark.every_time
def test_a_setting_is_found_and_saved_in_its_place_while_another_is_typed(page: Page, file: Path) -> None:
    page.goto("/settings")
    page.get_by_label("Search settings").fill("retention")
    expect(page.locator(".connect")).to_be_hidden()
    one = page.locator("#setting-retention_days")
    one.locator("summary").click()
    expect(one).to_contain_text("After how many days without use a conversation moves to the trash")
    field = one.get_by_role("textbox", name="retention_days")
    field.fill("ten")
    field.press("Enter")
    expect(one.get_by_role("alert")).to_contain_text('retention_days is "ten"; it must be a whole number from 1')
    field.fill("90")
    one.get_by_role("button", name="Save").click()
    expect(one.get_by_role("status").last).to_have_text("Saved. It applies from the next question.")
    expect(page.locator("#save-retention_days")).to_be_focused()
    expect(page.locator(".setting:visible")).to_have_count(2)  # trash_days tells of it, too.
    expect(page.locator("#setting-retention_days > summary .value")).to_have_text("90")
    assert json.loads(file.read_text())["retention_days"] == 90

    page.get_by_label("Search settings").fill("log_level")
    other = page.locator("#setting-log_level")
    other.locator("summary").click()
    other.get_by_role("combobox").select_option("DEBUG")
    file.write_text('{"retention_days": 30}')
    expect(page.locator("#setting-retention_days .value")).to_have_text("30")
    other.get_by_role("button", name="Save").click()
    expect(other.get_by_role("status").last).to_have_text("Saved. It applies after a restart.")
    assert json.loads(file.read_text()) == {"retention_days": 30, "log_level": "DEBUG"}
    page.get_by_label("Search settings").fill("openai_model")
    fixed = page.locator("#setting-openai_model")
    fixed.locator("summary").click()
    expect(fixed).to_contain_text("Set by the environment variable OPENAI_MODEL.")
    expect(fixed.get_by_role("button", name="Save")).to_have_count(0)


@pytest.mark.settings(OPENAI_BASE_URL="", OPENAI_MODEL="")
def test_once_an_address_answers_its_models_are_a_list_to_choose_from(page: Page, file: Path, stub: StubModel) -> None:
    stub.models = [{"id": "small"}, {"id": "large"}]
    page.goto("/settings")
    page.get_by_label("Address").fill(stub.url)
    page.get_by_label("API key").fill("sk-typed")
    model = page.locator("select#model-name")
    expect(model.locator("option")).to_have_text(["The first one listed", "small", "large"])
    expect(page.get_by_label("API key")).to_have_value("sk-typed")
    model.select_option("large")
    # While an address does not answer, the next one is listed, and what is pressed is done.
    gate = threading.Event()
    page.route("**/settings?*", lambda route: gate.is_set() and route.continue_(), times=1)
    page.get_by_label("Address").fill("http://127.0.0.1:1/v1")
    page.get_by_label("API key").focus()
    page.get_by_label("Address").fill(stub.url.removeprefix("http://"))
    page.locator(".connect").get_by_role("button", name="Save").click()
    expect(page.locator(".connect").get_by_role("status")).to_contain_text("Saved.")
    kept = json.loads(file.read_text())
    assert (kept["openai_base_url"], kept["openai_model"]) == (stub.url, "large")


def test_a_broken_file_is_a_banner_in_a_conversation_and_in_the_drawer_until_it_is_mended(
    page: Page, file: Path
) -> None:
    ask_many(page, 1)
    file.write_text('{\n  "max_history_turns": "ten"\n}')
    banner = page.locator("#banners .warning")
    expect(banner).to_contain_text("settings.json line 2")
    banner.get_by_role("link", name="Settings").click()
    drawer = page.locator("#drawer")
    expect(drawer.get_by_role("heading", name="Settings", exact=True)).to_be_visible()
    expect(drawer.locator(".banner")).to_contain_text("line 2")
    file.write_text('{"max_history_turns": 4}')
    expect(banner).to_have_count(0)
    expect(drawer.locator(".banner")).to_have_count(0)
    expect(drawer.locator("#setting-max_history_turns .value")).to_have_text("4")
    expect(page.locator("#window summary")).to_have_text("Memory: last 4 turns")


@pytest.mark.shared
def test_the_panel_below_the_box_has_all_of_a_conversations_memory(page: Page, server: ServerProcess) -> None:
    address = f"/api/conversations/{ask_many(page, 3)}"
    panel = window(page)
    panel.get_by_label("How many earlier turns to send").fill("2")
    panel.get_by_label("When there are more turns than that").select_option("ask")
    panel.get_by_label("Use my notes").select_option("false")
    panel.get_by_role("button", name="Apply").click()
    expect(page.locator("#window summary")).to_have_text("Memory: last 2 turns")
    kept = server.call("GET", address)[1]
    assert (kept["max_history_turns"], kept["on_overflow"], kept["notes"]) == (2, "ask", False)
    page.route(f"**{address}", lambda route: route.abort())
    window(page).get_by_role("button", name="Apply").click()
    expect(panel.get_by_role("alert")).to_have_text("The server cannot be reached.")


@pytest.mark.settings(MODELS_OFFERED='["small", "large"]')
def test_a_question_goes_to_the_chosen_model_and_so_does_the_next(page: Page, stub: StubModel) -> None:
    page.goto("/")
    choice = page.get_by_role("combobox", name="Model")
    expect(choice.locator("option")).to_have_text(["Default: stub-model", "small", "large"])
    choice.select_option("large")
    ask(page, "Why?", 1)
    assert stub.requests[-1].body["model"] == "large"
    ask(page, "And why?", 2)
    assert stub.requests[-1].body["model"] == "large"
    page.reload()
    expect(choice).to_have_value("large")
    choice.select_option("")
    ask(page, "And now?", 3)
    assert stub.requests[-1].body["model"] == "stub-model"
