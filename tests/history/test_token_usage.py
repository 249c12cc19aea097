"""The bar of tokens: its parts, their order and their places."""

import pytest

from rag_assistant.history.figures import token_parts, tokens_sentence

TOKENS = {"system": 100, "tools": 0, "summary": 50, "history": 300, "passages": 350, "question": 0, "limit": 1000}


def test_the_parts_stand_in_the_order_in_which_they_are_sent_and_the_rest_is_free() -> None:
    parts = token_parts(TOKENS)
    assert [(part.name, part.tokens) for part in parts] == [
        ("system", 100), ("summary", 50), ("history", 300), ("passages", 350), ("free", 200),
    ]  # fmt: skip
    assert [part.start for part in parts] == [0, 10, 15, 45, 80]


@pytest.mark.parametrize("limit", [None, 500])
def test_without_room_there_is_nothing_free_and_the_parts_fill_the_bar(limit: int | None) -> None:
    parts = token_parts(TOKENS | {"limit": limit})
    assert "free" not in [part.name for part in parts]
    assert sum(part.width for part in parts) == pytest.approx(100, abs=0.1)


def test_a_very_small_part_is_seen() -> None:
    parts = token_parts({"system": 1, "question": 3, "limit": 1_000_000})
    assert [part.width for part in parts] == [3, 3, 94]


def test_a_request_without_tokens_has_no_parts() -> None:
    assert token_parts({}) == []
    assert tokens_sentence({}) == "No tokens."


def test_the_figures_are_a_sentence_for_those_who_do_not_see_the_bar() -> None:
    assert tokens_sentence({"system": 100, "limit": 4096}) == "Estimated tokens: instructions 100, free 3,996."
