"""What an amount in a cell of a table keeps: its sign, its thousands, its unit and the time it is for."""

import json

import pytest

from tests.answering.test_cell_values import cell, result_about

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
    result = result_about(answer, text, "What is the balance?", "number", model)
    assert (result.number, result.doubt) == (number, None if model else "not_understood")
    assert ("-" in result.value) is (number < 0)
    assert any(unit in result.value for unit in ("£", "$", "€", "GBP", "EUR", "USD"))


@pytest.mark.parametrize("written", ["-£300.00", "GBP -300.00", "\u2212300.00 GBP", "(300.00) GBP"])
@pytest.mark.parametrize("kind", ["text", "number"])
def test_an_amount_with_another_sign_is_marked(written: str, kind: str) -> None:
    for answer in ("£300.00", "300.00 GBP", "GBP 300.00"):
        assert cell(answer, f"The balance is {written}.", "What is the balance?", kind)[3] is not None
    assert cell("-£300.00", "The balance is £300.00.", "What is the balance?", kind)[3] is not None


@pytest.mark.parametrize(("written", "number"), AMOUNTS)
@pytest.mark.parametrize("value", [str, float])
def test_a_number_in_json_is_as_its_passage_writes_it(written: str, number: float, value: type) -> None:
    answer = json.dumps({"value": written if value is str else number, "passage": 1})
    result = result_about(answer, f"The balance is {written}.", "What is the balance?", "number")
    assert (result.number, result.doubt) == (number, None)
    assert any(unit in result.value for unit in ("£", "$", "€", "GBP", "EUR", "USD"))


PERIODS = [
    ("£4,250 per month", "month", "year"), ("EUR 90 per week", "week", "month"), ("900 EUR pro Monat", "Monat", "Jahr"),
    ("900 EUR par mois", "mois", "année"), ("$40 monthly", "month", "annual"), ("£12/hour", "hour", "day"),
    ("USD 118,000 a year", "year", "month"), ("EUR 2.5 million per year", "yearly", "monthly"),
]  # fmt: skip


@pytest.mark.parametrize(("written", "own", "another"), PERIODS)
def test_an_amount_keeps_the_time_it_is_for(written: str, own: str, another: str) -> None:
    text = f"The rent is {written}."
    for asked, doubt in (("", None), (own, None), (another, "unverified")):
        result = result_about(f"{written} [1]", text, f"What is the rent {asked}?", "number")
        assert (result.value, result.doubt) == (written, doubt)


@pytest.mark.parametrize("written", ["12 km/h", "12 m²", "12 persons", "12 EUR per person", "12 °C"])
def test_a_unit_is_kept_whole(written: str) -> None:
    text = f"The figure of the house is {written} by law."
    assert cell(f"{written}", text, "What is the figure of the house?", "number")[1] == written
