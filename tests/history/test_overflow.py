"""Overflow: what can be chosen, and what a summary must be to stand for turns."""

import pytest

from rag_assistant.history import checked_summary, estimate_tokens
from rag_assistant.records.errors import SummaryRejected


@pytest.mark.parametrize(
    "text",
    [
        "<think>Let me see.</think>\nThey chose blue.",
        "<thinking>a\nb</thinking>They chose <THINK>x</THINK>blue.",
        "They chose blue.<think>cut off in the mid",
        "  They chose blue.\n",
    ],
)
def test_a_models_thoughts_are_no_part_of_its_summary(text: str) -> None:
    assert checked_summary(text, 100, estimate_tokens) == "They chose blue."


@pytest.mark.parametrize("text", ["", "   \n", "<think>only thoughts</think>", "<think>never finished"])
def test_a_blank_summary_is_refused(text: str) -> None:
    with pytest.raises(SummaryRejected, match=r"empty summary\.$"):
        checked_summary(text, 100, estimate_tokens)


def test_a_summary_that_is_not_shorter_than_its_turns_is_refused_with_both_figures() -> None:
    with pytest.raises(SummaryRejected, match="about 56 tokens, the turns themselves about 56"):
        checked_summary("x" * 200, 56, estimate_tokens)
    assert checked_summary("x" * 200, 57, estimate_tokens) == "x" * 200


def test_a_summary_that_says_the_same_over_and_over_is_refused() -> None:
    with pytest.raises(SummaryRejected, match="over and over"):
        checked_summary("They chose blue. " * 4, 100, estimate_tokens)
    with pytest.raises(SummaryRejected, match="over and over"):
        checked_summary("彼らは青を選んだ。" * 4, 100, estimate_tokens)


@pytest.mark.parametrize("text", ["Yes. Yes. Yes.", "It runs at 10.10.10.10.", "They wait... and wait... and wait..."])
def test_what_is_no_sentence_or_said_three_times_is_not_the_same_over_and_over(text: str) -> None:
    assert checked_summary(text, 100, estimate_tokens) == text
