"""The page in other languages than English: what is said, from where it is read, and that it fits."""

import pytest
from playwright.sync_api import Page, expect

from tests.browser.talk import ask_many

LANGUAGES = {
    "de": ("Ihre Frage", "Fragen", "Das Modell hat 1 von 2 früheren Fragen (1 über der eingestellten Anzahl) gesehen."),
    "ar": ("سؤالك", "اسأل", "رأى النموذج 1 من 2 من الجولات السابقة (1 فوق حد الجولات)."),
}
PAGES = ("/documents", "/", "/deleted", "/settings", "/ratings")


@pytest.mark.every_time
@pytest.mark.shared
@pytest.mark.parametrize("code", [pytest.param("de", marks=pytest.mark.long), "ar"])
def test_a_question_is_asked_and_a_trim_told_in_the_language_of_the_browser(page: Page, code: str) -> None:
    field, button, notice = LANGUAGES[code]
    page.set_extra_http_headers({"Accept-Language": code})
    ask_many(page, 2, max_history_turns=1)
    expect(page.locator("html")).to_have_attribute("dir", "rtl" if code == "ar" else "ltr")
    page.get_by_label(field, exact=True).fill("Question 3")
    page.get_by_role("button", name=button, exact=True).click()
    page.locator("#turn-3.completed").wait_for()
    expect(page.locator("#turn-3 .trimmed")).to_contain_text(notice)
    expect(page.locator("#turn-3 .trimmed code")).to_have_text("[History trimmed to last 1 turns]")
    expect(page.locator("#turn-3 .trimmed code")).to_have_css("direction", "ltr")


def test_a_page_from_right_to_left_has_its_sidebar_on_the_right(page: Page) -> None:
    page.set_extra_http_headers({"Accept-Language": "ar"})
    page.set_viewport_size({"width": 1280, "height": 800})
    page.goto("/")
    sidebar, column = page.locator("#sidebar").bounding_box(), page.locator("#column").bounding_box()
    assert sidebar is not None
    assert column is not None
    assert sidebar["x"] >= column["x"] + column["width"] - 1


@pytest.mark.parametrize(
    ("code", "every"),
    [("de", 3), *(pytest.param(code, 1, marks=pytest.mark.long) for code in ("de", "ar", "fr", "es", "zh"))],
)
@pytest.mark.shared
def test_nothing_is_wider_than_a_phone(page: Page, code: str, every: int) -> None:
    page.set_extra_http_headers({"Accept-Language": code})
    page.set_viewport_size({"width": 360, "height": 740})
    for path in PAGES[::every]:
        page.goto(path)
        wide = page.evaluate("[document.documentElement.scrollWidth, document.getElementById('main').scrollWidth]")
        assert max(wide) <= 360, path
