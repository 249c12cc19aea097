"""How the answer of a cell is read where it is less, or other, than a value with its passage."""

import json

import pytest

from rag_assistant.records import CellResult
from tests.answering.test_cell_values import cell, doubt_of, result_about

PRICES = "The fee is EUR 5.00 in May. The fee was EUR 7.00 in June. The notice period is three months (3 months)."


@pytest.mark.parametrize("kind", ["text", "number"])
@pytest.mark.parametrize(
    ("stated", "outcome"),
    [
        ("EUR 5.00; EUR 7.00", "disagreement"), ("EUR 5.00; EUR 7.00; EUR 99", "disagreement"),
        ("EUR 98; EUR 99", "disagreement"), ("EUR 5.00", "disagreement"), ("EUR 5.00; EUR 5.00", "disagreement"),
        ("", "not_found"), ("none", "not_found"), ("not found", "not_found"), (" ; ", "not_found"),
    ],
)  # fmt: skip
def test_a_disagreement_is_what_the_model_calls_a_contradiction(stated: str, outcome: str, kind: str) -> None:
    as_json = json.dumps({"value": f"contradiction: {stated}", "passage": 1})
    for answer in (f"contradiction: {stated} [1]", as_json):
        result = result_about(answer, PRICES, "What is the fee?", kind)
        values = dict.fromkeys(stated.split("; ")) if outcome == "disagreement" else ()
        assert (result.outcome, result.value, result.doubt) == (outcome, " / ".join(values), None)


@pytest.mark.parametrize("lines", range(2, 9))
@pytest.mark.parametrize("question", ["What is the notice period?", "Notice period"])
def test_without_a_model_a_text_is_the_line_about_the_question(lines: int, question: str) -> None:
    others = ["Supplier: Printwell GmbH", "Customer: Stadt Bern", "City: Bern", "Start: 1 May", "Price: EUR 5"]
    others += ["Payment: within 30 days", "Contact: Anna Berg"]
    text = "\n".join([*others[: lines - 1], "Notice period: 3 months"])
    quote = "\n".join(f"> {line}" for line in text.split("\n"))
    result = result_about(f"Here is what your documents say:\n\n{quote} [1]", text, question, "text", None)
    assert (result.value, result.quote) == ("Notice period: 3 months", "Notice period: 3 months")


@pytest.mark.parametrize("apostrophe", ["'", "\u2019"])
@pytest.mark.parametrize("verb", ["isn't", "wasn't", "won't be", "doesn't equal"])
def test_a_short_not_denies_too(verb: str, apostrophe: str) -> None:
    text = f"The rent {verb} EUR 900.".replace("'", apostrophe)
    assert doubt_of("EUR 900", text, "What is the rent?", "number") == "unverified"


@pytest.mark.parametrize(
    ("written", "number"),
    [
        ("40 m", 40), ("40 M", 40), ("40 k", 40), ("120 m2", 120), ("120 m²", 120), ("EUR 40 m", 40e6),
        ("€40 M", 40e6), ("40 k EUR", 40e3), ("40 m €", 40e6), ("40 million people", 40e6), ("2 Mio. EUR", 2e6),
    ],
)  # fmt: skip
def test_letters_are_sizes_only_of_money(written: str, number: float) -> None:
    text = f"The size of the fence is {written} by law."
    assert cell(written, text, "What is the size of the fence?", "number") == ("value", written, number, None)


def test_square_metres_are_no_metres() -> None:
    assert doubt_of("120 m", "The area is 120 m2.", "What is the area?", "number") == "unverified"
    assert doubt_of("120 m²", "The area is 120 m2.", "What is the area in m²?", "number") is None


@pytest.mark.parametrize(
    ("written", "number"),
    [
        ("twenty-four months", 24), ("twenty four months", 24), ("twenty-one days", 21), ("two dozen boxes", 24),
        ("two hundred days", 200), ("two million euros", 2e6), ("two and a half years", None),
        ("five hundred and two days", None), ("zweiundzwanzig Monate", None), ("two thousand five hundred days", None),
        ("a hundred and five days", None), ("one hundred days", None), ("three months", 3),
        ("two hundred thousand dollars", 2e5),
    ],
)  # fmt: skip
@pytest.mark.parametrize("model", ["stub", None])
def test_a_number_word_is_never_a_part_of_a_longer_one(written: str, number: float | None, model: str | None) -> None:
    text = f"The term is {written}."
    answer = f"{written} [1]" if model else f"Here is what your documents say:\n\n> {text} [1]"
    result = result_about(answer, text, "What is the term?", "number", model)
    assert result.number == number
    assert result.value in (written, written.removeprefix("a "), "")
    assert result.doubt in (None, "wrong_type" if number is None else None, "not_understood")


@pytest.mark.parametrize("behind", ["", ".", " by law.", ", with tax.", " rented out here."])
@pytest.mark.parametrize("kind", ["text", "number"])
@pytest.mark.parametrize(
    "rate", ["per square metre", "/m²", "/m2", "per parking space", "je Stellplatz", "per box", "every box"]
)
def test_an_amount_for_each_of_something_is_in_another_unit(rate: str, kind: str, behind: str) -> None:
    whole = f"EUR 12.50{'' if rate.startswith('/') else ' '}{rate}"
    text = f"The fee is {whole}{behind}"
    for answer in ("EUR 12.50", whole):
        result = result_about(f"{answer} [1]", text, "What is the fee?", kind)
        assert result.value in ("EUR 12.50", whole)
        assert result.doubt in ("unverified", "unverified")
    if "rented" not in behind:
        assert doubt_of(whole, text, f"What is the fee {rate}?", kind) is None


def test_the_number_of_a_passage_may_be_a_text() -> None:
    for passage in (1, "1", "[1]"):
        answer = json.dumps({"value": "EUR 5.00", "passage": passage})
        assert result_about(answer, "The fee is EUR 5.00.", "What is the fee?", "number").doubt is None


@pytest.mark.parametrize("kind", ["text", "number", "date", "yes_no"])
@pytest.mark.parametrize(
    "answer",
    ['{"value": "EUR 5.00", "passage": 1', '{"value": "EUR 5.00', "EUR 5.00 or EUR 6.00", '{"value": "5 or 6 EUR"}'],
)
def test_what_cites_nothing_says_so(answer: str, kind: str) -> None:
    result = result_about(answer, "The fee is EUR 5.00.", "What is the fee?", kind)
    assert (result.doubt, result.quote) == ("not_cited", None)


def test_several_values_are_said_of_a_sentence_that_has_them() -> None:
    assert cell("EUR 5 or EUR 6", "The fee is EUR 5.", "What is the fee?", "number")[3] == "more_answered"
    assert cell("EUR 5 or EUR 6", "The fee is EUR 5 or EUR 6.", "What is the fee?", "number")[3] == "unverified"


@pytest.mark.parametrize("model", ["stub", None])
@pytest.mark.parametrize(
    "text",
    [
        "Are dogs allowed? No.", "Q: Are dogs allowed? A: No.", "Q: Are dogs allowed?\nA: No.",
        "Are dogs allowed?\nNo.", "**Are dogs allowed?**\n\nNo.",
    ],
)  # fmt: skip
def test_a_question_is_shown_with_its_answer(text: str, model: str | None) -> None:
    whole = f"The garden is nice.\n\n{text}\n\nThe gate is green."
    answer = "no [1]" if model else "Here is what your documents say:\n\n> " + text.replace("\n", "\n> ") + " [1]"
    result: CellResult = result_about(answer, whole, "Are dogs allowed?", "yes_no", model)
    if model:
        assert (result.value, result.quote, result.doubt) == ("no", text, "unverified")
    else:
        assert text.endswith(result.quote or "?")


@pytest.mark.parametrize(
    ("answer", "text", "doubt"),
    [
        ("2023-07", "The contract starts in July 2023.", None),
        ("July 2023", "The contract starts in July 2023.", None),
        ("2023", "The contract starts in 2023.", None),
        ("2023-07", "The contract starts in 2023-07.", None),
        ("2023-08", "The contract starts in July 2023.", "unverified"),
        ("2023-07", "The contract starts in 2023.", "unverified"),
        ("2023-24", "The contract starts in 2023.", "wrong_type"),
    ],
)
def test_a_date_may_be_a_month_or_a_year(answer: str, text: str, doubt: str | None) -> None:
    assert doubt_of(answer, text, "When does the contract start?", "date") == doubt
