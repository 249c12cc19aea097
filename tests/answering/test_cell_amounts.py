"""What an amount in a cell of a table keeps: its sign, its thousands, its unit and the time it is for."""

import pytest
from msgspec.structs import replace

from rag_assistant.answering.cell_values import result_of, text_of
from rag_assistant.records import CellResult, GridColumn
from tests.answering.test_cell_values import cell, result_about, turn_about

AMOUNTS = [
    ("-£300.00", -300), ("-$40.00", -40), ("GBP -50.00", -50), ("\u22120.40 GBP", -0.4), ("-40.00 EUR", -40),
    ("-USD 7", -7), ("3\u00a0600,00\u00a0€", 3600), ("3\u202f600,00\u202f€", 3600), ("12\u2009500 EUR", 12_500),
    ("3 600,00 €", 3600),
]  # fmt: skip


@pytest.mark.parametrize(("written", "number"), AMOUNTS)
@pytest.mark.parametrize("model", ["stub", None])
def test_an_amount_keeps_its_sign_its_thousands_and_its_unit(written: str, number: float, model: str | None) -> None:
    text = f"The balance of the account is {written}."
    answer = f"{written} [1]" if model else f"Here is what your documents say:\n\n> {text} [1]"
    for question in ("What is the balance?", "What is the balance in GBP, USD or EUR?"):
        result = result_about(answer, text, question, "number", model)
        assert (result.number, result.doubt) == (number, None)
        assert ("-" in result.value) is (number < 0)
        assert any(unit in result.value for unit in ("£", "$", "€", "GBP", "EUR", "USD"))


@pytest.mark.parametrize("written", ["-£300.00", "GBP -300.00", "\u2212300.00 GBP", "(300.00) GBP"])
@pytest.mark.parametrize("kind", ["text", "number"])
def test_an_amount_with_another_sign_is_marked(written: str, kind: str) -> None:
    for answer in ("£300.00", "300.00 GBP", "GBP 300.00"):
        assert cell(answer, f"The balance is {written}.", "What is the balance?", kind)[3] is not None
    assert cell("-£300.00", "The balance is £300.00.", "What is the balance?", kind)[3] is not None


def json_cell(answer: str, text: str, question: str) -> CellResult:
    turn = turn_about(answer, text, question)
    column = GridColumn(1, "", question, "number")
    return result_of(replace(turn, answer=text_of(turn, column)), column)


@pytest.mark.parametrize(("written", "number"), AMOUNTS)
def test_a_number_in_json_is_as_its_passage_writes_it(written: str, number: float) -> None:
    result = json_cell(f'{{"value": {number}, "passage": 1}}', f"The balance is {written}.", "What is the balance?")
    assert (result.number, result.doubt) == (number, None)
    assert any(unit in result.value for unit in ("£", "$", "€", "GBP", "EUR", "USD"))


PERIODS = [
    ("£4,250 per month", "month", "year"), ("EUR 90 per week", "week", "month"), ("900 EUR pro Monat", "Monat", "Jahr"),
    ("900 EUR par mois", "mois", "année"), ("$40 monthly", "month", "annual"), ("£12/hour", "hour", "day"),
    ("USD 118,000 a year", "year", "month"), ("EUR 2.5 million per year", "yearly", "monthly"),
]  # fmt: skip


@pytest.mark.parametrize(("written", "own", "another"), PERIODS)
@pytest.mark.parametrize("model", ["stub", None, "json"])
def test_an_amount_keeps_the_time_it_is_for(written: str, own: str, another: str, model: str | None) -> None:
    text = f"The rent is {written}."
    for asked, doubt in (("", None), (own, None), (another, "wrong_type")):
        question = f"What is the rent {asked}?"
        if model == "json":
            number = result_about(f"{written} [1]", text, "What is the rent?", "number").number
            result = json_cell(f'{{"value": {number}, "passage": 1}}', text, question)
        else:
            answer = f"{written} [1]" if model else f"Here is what your documents say:\n\n> {text} [1]"
            result = result_about(answer, text, question, "number", model)
        if model is None and doubt:  # The nearest sentence is shown.
            assert (result.outcome, result.quote) == ("not_found", text)
        else:
            assert (result.value, result.doubt) == (written, doubt)


def test_days_a_year_are_asked_for_by_their_year() -> None:
    assert cell("30 days", "The annual leave is 30 days.", "What is the annual leave?", "number")[3] is None


@pytest.mark.parametrize(
    ("heading", "value"), [("Invoice 2291", "2291"), ("Property Insurance Policy AP-77120", "AP-77120")]
)
def test_a_value_of_a_heading_rests_on_it(heading: str, value: str) -> None:
    text = f"All is well.\n\n# {heading}\n\nThe garden is green. It is big."
    result = result_about(f"{value} [1]", text, "What is the number of the policy or invoice?", "text")
    assert (result.value, result.quote, result.doubt) == (value, heading, None)
    assert text[result.start : result.end] == heading
