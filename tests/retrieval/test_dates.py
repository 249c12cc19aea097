"""Dates in six languages: read, compared with those of another text, and told if they are in none."""

import pytest

from rag_assistant.retrieval.claims import strange_figures
from rag_assistant.retrieval.dates import dates_in, days_in

THIRD_OF_APRIL = [
    *("3 April 2024", "3rd of April 2024", "April 3, 2024", "Apr. 3, 2024", "2024-04-03", "3.4.2024", "03/04/2024"),
    *("3. April 2024", "3. Apr. 2024", "3 avril 2024", "3 avr. 2024", "3 de abril de 2024", "3 abril 2024"),
    *("2024年4月3日", "2024 年 4 月 3 日", "3 أبريل 2024", "٣ نيسان ٢٠٢٤", "3 أفريل 2024"),
]


@pytest.mark.parametrize("source", THIRD_OF_APRIL)
@pytest.mark.parametrize("answer", THIRD_OF_APRIL)
def test_a_date_is_the_same_however_and_in_whatever_language_it_is_written(answer: str, source: str) -> None:
    assert strange_figures(f"It is due on {answer}.", f"Due: {source}.") == []


@pytest.mark.parametrize("answer", THIRD_OF_APRIL)
@pytest.mark.parametrize("source", ["5 April 2024", "3 March 2022", "2024: 3 boats"])
def test_another_day_or_month_is_told(answer: str, source: str) -> None:
    assert strange_figures(f"Il est dû le {answer}.", source) == [answer]


@pytest.mark.parametrize(
    ("answer", "source"),
    [
        ("In April 2024.", "on 3 April 2024"),
        ("On 3 April.", "on 3 April 2024"),
        ("On 3 April 2024.", "The year 2024 in short\n\n3 April: the ferry sails again."),
        ("On 13 June, and on 14 June.", "13, 14 and 15 June"),
        ("From 13 June 2024.", "13-15 June 2024"),
        ("On 9/11/2001.", "on November 9, 2001"),
        ("You may 30 days later, in May.", "30 days"),
        ("From March on, 12 people march.", "12"),
    ],
)
def test_a_part_of_a_date_or_one_of_several_is_no_other_date(answer: str, source: str) -> None:
    assert strange_figures(answer, source) == []


@pytest.mark.parametrize("answer", THIRD_OF_APRIL)
def test_a_year_that_is_nowhere_is_told_as_a_figure(answer: str) -> None:
    assert len(strange_figures(f"On {answer}", "3 April 2019, and again in 2022")) == 1


def test_what_is_no_date_is_compared_as_figures() -> None:
    assert strange_figures("See 31.31.2024, part 99 April.", "2024") == ["31.31.2024", "99"]
    assert dates_in("Version 1.2.2024.5, 10-12-20245, the 45 May and 2024年13月1日") == []


@pytest.mark.parametrize("text", ["12 MAY 2025", "may 12, 2025", "May 12", "DEADLINE: 12 MAY", "12 mai", "march 2025"])
def test_a_month_is_one_in_capitals_and_small_letters(text: str) -> None:
    assert len(dates_in(text)) == 1


def test_a_verb_is_no_month() -> None:
    assert dates_in("You may 5 times. Up to 10 may attend. They march 12 km, or may 2000000.") == []


def test_digits_of_arabic_are_figures_as_others_are() -> None:
    assert strange_figures("It costs 1200 or 17.", "١٢٠٠") == ["17"]


def test_each_month_is_known_in_each_language() -> None:
    names = {
        "en": "January February March April May June July August September October November December",
        "de": "Januar Februar März April Mai Juni Juli August September Oktober November Dezember",
        "fr": "janvier février mars avril mai juin juillet août septembre octobre novembre décembre",
        "es": "enero febrero marzo abril mayo junio julio agosto septiembre octubre noviembre diciembre",
        "ar": "يناير فبراير مارس أبريل مايو يونيو يوليو أغسطس سبتمبر أكتوبر نوفمبر ديسمبر",
        "zh": " ".join(f"{n}月" for n in range(1, 13)),
    }
    for language, months in names.items():
        for number, month in enumerate(months.split(), 1):
            text = f"2024年{month}8日" if language == "zh" else f"8 {month} 2024"
            assert [(set(days), match["year"]) for match, days in dates_in(text)] == [({(number, 8)}, "2024")], text
            assert (number, 8) in days_in(text)
