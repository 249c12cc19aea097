"""How the list of conversations reads: its groups, and what is shown of a hit."""

from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from rag_assistant.records import ListedConversation
from rag_assistant.web.pages.frame import groups_of, snippet_of, zone_named

NOW = datetime(2026, 5, 20, 12, 0, tzinfo=UTC)


def used(moment: datetime, number: int = 1) -> ListedConversation:
    return ListedConversation(number, f"Talk {number}", moment)


def headings(*moments: datetime, zone: str = "UTC", now: datetime = NOW) -> list[tuple[str | date, int]]:
    groups = groups_of([used(moment) for moment in moments], now, zone_named(zone))
    return [(group.title, len(group.conversations)) for group in groups]


def test_conversations_stand_under_the_days_on_which_they_were_last_used() -> None:
    ages = [0, 0.4, 1, 2, 7, 8, 30, 31, 100, 150, 500, 510, 900]
    assert headings(*(NOW - timedelta(days=days) for days in ages)) == [
        ("Today", 2),
        ("Yesterday", 1),
        ("Previous 7 days", 2),
        ("Previous 30 days", 2),
        (date(2026, 4, 1), 1),
        (date(2026, 2, 1), 1),
        ("2025", 2),
        ("2024", 1),
        ("2023", 1),
    ]


def test_no_conversation_makes_no_group() -> None:
    assert headings() == []


def test_a_day_begins_at_the_readers_midnight() -> None:
    late = datetime(2026, 5, 19, 23, 30, tzinfo=UTC)
    early = datetime(2026, 5, 20, 0, 30, tzinfo=UTC)
    assert headings(early, late) == [("Today", 1), ("Yesterday", 1)]
    assert headings(early, late, zone="Europe/Berlin") == [("Today", 2)]
    assert headings(early, late, zone="America/New_York") == [("Yesterday", 2)]


def test_a_conversation_from_a_clock_that_runs_ahead_is_of_today() -> None:
    assert headings(NOW + timedelta(days=2)) == [("Today", 1)]


@pytest.mark.parametrize("name", [None, "", "Nowhere/Land", "../../etc/passwd", "/etc/passwd", "a\0b", "x" * 500, "."])
def test_a_name_that_is_no_time_zone_means_utc(name: str | None) -> None:
    assert zone_named(name) is UTC


def test_a_time_zone_is_known_by_its_name() -> None:
    assert zone_named("Asia/Tokyo") == ZoneInfo("Asia/Tokyo")


def marked(text: str, *words: str) -> str:
    return "".join(f"[{piece}]" if hit else piece for piece, hit in snippet_of(text, words))


def test_a_snippet_marks_the_words_that_were_sought() -> None:
    assert marked("There are seventeen geese.", "geese", "seventeen") == "There are [seventeen] [geese]."


def test_a_snippet_marks_the_beginning_of_a_word_and_its_other_forms() -> None:
    assert marked("Seventeen geese", "sev") == "[Seventeen] geese"
    assert marked("They were running.", "runs") == "They were [running]."
    assert marked("Two documents", "document") == "Two [documents]"
    assert marked("One document", "documents") == "One [document]"
    assert marked("An art and a cart", "art") == "An [art] and a cart"


def test_a_snippet_of_a_long_text_stands_around_the_first_hit() -> None:
    shown = marked("before " * 100 + "goose" + " behind" * 100, "goose")
    assert shown.startswith("… before")
    assert shown.endswith(" …")
    assert "[goose]" in shown
    assert len(shown) < 220


def test_a_snippet_without_a_hit_is_the_beginning_of_the_text() -> None:
    assert marked("One two three", "zebra") == "One two three"
    assert marked("", "zebra") == ""


def test_a_snippet_stays_short_when_the_word_that_was_found_is_endless() -> None:
    assert len(marked("before " + "base64" * 30_000, "base")) < 220
    assert len(marked("文" * 100_000 + "档" * 100_000, "档")) < 220


@pytest.mark.parametrize("text", ["word " * 100_000, "geese-" * 80_000, "слово " * 80_000, "文档" * 250_000])
@pytest.mark.parametrize("words", [["word", "文档"], [f"wor{number}" for number in range(64)]])
@pytest.mark.timeout(60)  # It takes a moment, or for ever.
def test_a_snippet_of_the_longest_turns_comes_to_an_end(text: str, words: list[str]) -> None:
    assert len("".join(part for part, _ in snippet_of(text, words))) < 220


def test_a_snippet_finds_words_in_scripts_without_blanks() -> None:
    assert marked("我们的文档系统很好", "文档") == "我们的[文档]系统很好"
    assert marked("我们的API文档", "api") == "我们的[API]文档"


def test_a_snippet_leaves_out_the_marks_of_markdown() -> None:
    assert marked("## Birds\nThere are **seventeen** `geese`", "geese") == "Birds There are seventeen [geese]"
