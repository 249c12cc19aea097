"""Questions that need all of something."""

import pytest

from rag_assistant.retrieval.table_words import needs_everything

TEXT = "The assets were counted in May."
TABLE = "| Asset | Place |\n|---|---|\n| A1 | Oslo |"


@pytest.mark.parametrize(
    "question",
    [
        "List the assets in Oslo",
        "Please summarise the minutes",
        "Compare Oslo and Lisbon",
        "What do all our assets cost?",
        "Name all steps",
        "Fasse das Protokoll zusammen",
    ],
)
def test_what_asks_for_all_is_told_by_its_words(question: str) -> None:
    assert needs_everything(question, [TEXT])


@pytest.mark.parametrize(
    "question", ["How many assets are in Oslo?", "Which assets are in Oslo?", "Which asset is the oldest?"]
)
def test_of_a_table_or_a_list_everything_is_needed_where_of_a_text_it_is_not(question: str) -> None:
    assert [needs_everything(question, [text]) for text in (TEXT, TABLE, "- A1 in Oslo")] == [False, True, True]


@pytest.mark.parametrize(
    "question",
    [
        "Who was Count of Melfi?",
        "What surveys show the location?",
        "How do schools compare?",
        "Show me the way",
        "What was spent in total?",
        "How many days of holiday do I get?",
    ],
)
def test_what_asks_for_a_fact_is_told_from_it(question: str) -> None:
    assert not needs_everything(question, [TEXT])
