"""What an answer says is compared with the passages that it cites: numbers, names, negations, words."""

import pytest

from rag_assistant.retrieval.claims import CITATION, check_citations, cited_numbers, strange_figures, unknown_citations

PASSAGES = {
    1: "The keeper of the lighthouse at Lindau feeds 17 geese every morning since 1942. The geese are not fed on "
    "Sundays.",
    2: "Residents of the county pay a vehicle tax of 40 dollars for each commercial vehicle that they register.",
}
ASKED = "Who feeds the geese at Lindau?"


def test_what_may_be_no_citation_is_not_told_to_name_no_source() -> None:
    assert unknown_citations("In [0, 100] nine [1, 7] and [9].", [1]) == [7, 9]


@pytest.mark.parametrize(
    ("written", "cited"),
    [
        ("[1]", [1]), ("[1, 2]", [1, 2]), ("[1; 3]", [1, 3]), ("[1-3]", [1, 2, 3]), ("[1\u20132]", [1, 2]),
        ("[^1]", [1]), ("[Source 1]", [1]), ("[Sources 1, 2]", [1, 2]), ("[source 1, source 2]", [1, 2]),
        ("\u30101\u3011", [1]), ("\u30101\u2020heron.md\u3011", [1]), ("[2-1]", [2, 1]), ("[1-900]", [1, 900]),
        ("[a]", []), ("[]", []), ("[1.5]", []), ("[v1]", []), ("(1)", []), ("[2026-03-15]", []), ("[ ]", []),
    ],
)  # fmt: skip
def test_citations_are_read_in_every_form_that_models_write(written: str, cited: list[int]) -> None:
    assert [n for match in CITATION.finditer(f"Nine {written}.") for n in cited_numbers(match)] == cited


def problems(answer: str, question: str = ASKED) -> list[tuple[int, int, str, tuple[str, ...], int | None]]:
    found = check_citations(answer, question, PASSAGES)
    return [(n, d.nth, d.problem, d.missing, d.carried_by) for n, one in found.items() for d in one.doubts]


@pytest.mark.parametrize(
    "answer",
    [
        "The keeper of the lighthouse feeds 17 geese every morning [1].",
        "The keeper feeds seventeen geese every morning. [1]",
        "Every morning since 1942, geese are fed by the lighthouse keeper at Lindau [1]",
        "On Sundays the geese are not fed [1].",
        "Each vehicle costs residents a tax of 40 dollars [2], and the keeper feeds 17 geese every morning [1].",
        "A vehicle tax of 40 dollars is paid, and 17 geese are fed by the keeper [1][2].",
        "Yes [1].",
        "Nothing is cited: 99 zebras at Quito.",
        "`99 zebras [1]`",
        "[7] says that 99 zebras live in Quito.",
        "",
    ],
)
def test_what_a_passage_carries_is_not_doubted(answer: str) -> None:
    assert problems(answer) == []


@pytest.mark.parametrize(
    ("answer", "doubt"),
    [
        ("The keeper feeds 19 geese every morning [1].", (1, 1, "number", ("19",), None)),
        ("Every morning the keeper, Bartholomew, feeds geese [1].", (1, 1, "name", ("Bartholomew",), None)),
        ("The keeper of the lighthouse at Lindau never feeds geese every morning [1].", (1, 1, "negation", (), None)),
        ("The geese at Lindau are fed on Sundays [1].", (1, 1, "negation", (), None)),
        ("Penguins swim around icebergs and hunt small fish [1].", (1, 1, "words", (), None)),
        ("Residents pay a vehicle tax of 40 dollars [1].", (1, 1, "number", ("40",), 2)),
        ("The keeper feeds 17 geese [1]. Later he feeds 18 geese [1].", (1, 2, "number", ("18",), None)),
    ],
)
def test_what_it_does_not_carry_is_doubted_with_what_is_missing_and_who_has_it(
    answer: str, doubt: tuple[int, int, str, tuple[str, ...], int | None]
) -> None:
    assert problems(answer) == [doubt]


def doubts(answer: str, passage: str) -> list[tuple[str, tuple[str, ...]]]:
    return [(one.problem, one.missing) for one in check_citations(answer, "Tell me.", {1: passage})[1].doubts]


@pytest.mark.parametrize(
    ("answer", "passage"),
    [
        ("Pets are allowed [1].", "Pets are not allowed."),
        ("Pets are allowed [1].", "Pets are not allowed in the office."),
        ("Pets are never allowed [1].", "Pets are allowed."),
        ("No pets are allowed [1].", "Pets are allowed in the office."),
        ("No, pets are not allowed [1].", "Pets are allowed in the office.\nSmoking is not allowed in the building."),
        ("Yes, pets are allowed [1].", "No pets are allowed in the office."),
        ("Rauchen ist gestattet [1].", "Rauchen ist im Hof nicht gestattet."),
        ("Es gibt einen Betriebsarzt [1].", "Es gibt keinen Betriebsarzt."),
        ("The deposit is refundable [1].", "The deposit is non-refundable."),
        ("Smoking is allowed [1].", "Pets are allowed\nSmoking is not allowed\nVisitors are allowed"),
    ],
)
def test_a_short_sentence_that_says_the_opposite_is_doubted(answer: str, passage: str) -> None:
    assert doubts(answer, passage) == [("negation", ())]


@pytest.mark.parametrize(
    ("answer", "passage"),
    [
        ("Pets are allowed [1].", "Pets are not allowed in the kitchen. Pets are allowed in the office."),
        ("Pets are allowed [1].", "Pets are allowed, but not in the kitchen."),
        ("Pets are allowed [1].", "Pets are allowed\nSmoking is not allowed\nVisitors are allowed"),
        ("Pets are allowed only with permission [1].", "Pets are not allowed without permission."),
        ("Guests are allowed [1].", "Guests are not allowed without a pass."),
        ("Returns are possible [1].", "Returns without a receipt are possible."),
        ("No, smoking is forbidden [1].", "Smoking is forbidden."),
        ("The deposit is not refundable [1].", "The deposit is non-refundable."),
        ("You may not bring pets [1].", "It is forbidden to bring pets."),
        ("Reports are due Friday [1].", "Reports are due no later than Friday."),
        ("Visitors are registered [1].", "Visitors who are not registered must wait outside."),
        ("Die Halle darf nicht betreten werden [1].", "Niemand darf die Halle betreten."),
        ("Das Büro ist nicht nur montags offen [1].", "Das Büro ist montags offen."),
    ],
)
def test_a_sentence_that_may_say_the_same_is_not_called_the_opposite(answer: str, passage: str) -> None:
    assert doubts(answer, passage) == []


SIGNED = (
    "Dr. Anna Meyer approves every trip of the staff. Mr. Jonas Weber signs the contract for 28 euros. Frau Lindner "
    "genehmigt den Urlaub der Abteilung."
)


@pytest.mark.parametrize(
    ("answer", "names"),
    [
        ("Dr. Kowalski approves every trip of the staff [1].", ("Kowalski",)),
        ("Mrs Kowalski signs the contract [1].", ("Kowalski",)),
        ("The trip is approved by Prof. Dr. Kowalski [1].", ("Kowalski",)),
        ("Herr Kowalski genehmigt den Urlaub der Abteilung [1].", ("Kowalski",)),
        ("Peter Kowalski approves every trip [1].", ("Peter", "Kowalski")),
        ("Peter Meyer approves every trip [1].", ("Peter",)),
        ("It is Peter Kowalski [1].", ("Peter", "Kowalski")),
        ("Dr. Meyer approves every trip of the staff [1].", ()),
        ("Frau Lindner genehmigt den Urlaub der Abteilung [1].", ()),
        ("Mr. Weber signs the contract for 28 EUR [1].", ()),
        ("Der Vertrag, den Mr. Weber unterschreibt, kostet 28 EUR [1].", ()),
        ("Vier Wochen Kündigungsfrist [1].", ()),
    ],
)
def test_names_are_looked_for_where_they_can_be_recognised(answer: str, names: tuple[str, ...]) -> None:
    assert doubts(answer, f"{SIGNED} Der Vertrag kostet 28 €.") == ([("name", names)] if names else [])


VERSIONS = {
    1: "Remote work policy\n\nVersion 1\n\nValid from 1 March 2024. Staff may work two days a week at home.",
    2: "Mietvertrag\n\nDas Mietverhältnis der Wohnung endet am 31.12.2028.",
}


@pytest.mark.parametrize(
    ("answer", "passage"),
    [
        ("Der Feiertagszuschlag beträgt 50 % [1].", "Gültig ab Mai.\n\nFeiertagszuschlag: 50 %"),
        ("The monitor costs 529 [1].", "| Article | Price |\n| Monitor | 529.00 |"),
        ("Der Ölwechsel kostet 149 EUR [1].", "Ölwechsel: 149,00 EUR"),
        ("The office budget is 1,450.00 EUR [1].", "Office budget 1450 EUR"),
        ("Die Miete beträgt 2450 EUR [1].", "Die Miete beträgt 2.450,00 EUR im Monat."),
        ("The rent is 2,450.50 EUR [1].", "Die Miete (rent) beträgt 2.450,50 EUR im Monat."),
        ("The kitchen closes at 6 pm [1].", "The kitchen closes at 18:00"),
        ("Die Küche schließt um 08:00 Uhr [1].", "Die Küche schließt um 8 Uhr"),
    ],
)
def test_a_short_sentence_with_its_figure_in_another_form_is_not_doubted(answer: str, passage: str) -> None:
    assert check_citations(answer, "Tell me.", {1: passage})[1].doubts == ()


@pytest.mark.parametrize(
    ("answer", "problem"),
    [
        ("Version 1 of this policy allows two days [1].", None),
        ("In 2024 staff were allowed two days of work at home [1].", None),
        ("Since March 2024 staff may work two days a week at home [1].", None),
        ("Das Mietverhältnis der Wohnung endet am 31. Dezember 2028 [2].", None),
        ("Since May 2024 staff may work two days a week at home [1].", ("number", ("May 2024",))),
        ("Version 2 of this policy allows two days [1].", ("number", ("2",))),
        ("Since March 2024 staff may work at home from 7 pm [1].", ("number", ("7",))),
        # What is there, but beside other words, is not called missing.
        ("Staff may bring 1 dog to work [1].", ("words", ())),
    ],
)
def test_a_number_is_called_missing_only_if_it_is_nowhere(
    answer: str, problem: tuple[str, tuple[str, ...]] | None
) -> None:
    checked = check_citations(answer, "Tell me about it.", VERSIONS)
    doubts = [(doubt.problem, doubt.missing) for one in checked.values() for doubt in one.doubts]
    assert doubts == ([] if problem is None else [problem])


def test_a_passage_that_says_clearly_more_of_a_sentence_is_the_one_to_cite() -> None:
    passages = {
        1: "Geese stay at the harbour of Lindau until the ice breaks, and the keeper of the light counts them.",
        2: "The keeper of the harbour at Lindau feeds the geese every morning with barley from the mill.",
    }
    answer = "The keeper feeds the geese at the harbour every morning with barley [{}]."
    doubt = check_citations(answer.format(1), ASKED, passages)[1].doubts
    assert [(one.problem, one.carried_by) for one in doubt] == [("words", 2)]
    # Alone, it says enough; and both together say all.
    assert check_citations(answer.format(1), ASKED, {1: passages[1]})[1].doubts == ()
    assert all(one.doubts == () for one in check_citations(answer.format("1, 2"), ASKED, passages).values())
    assert all(one.doubts == () for one in check_citations(answer.format(2), ASKED, passages).values())


def test_what_the_question_says_may_be_repeated() -> None:
    assert problems("In Quito, at 1990, the keeper feeds 17 geese [1].", "Who fed geese in Quito in 1990?") == []


@pytest.mark.parametrize(
    ("sentence", "passage"),
    [
        ("Die Verteidigung gab nur 308 Punkte ab [1].", "Die Verteidigung der Panthers gab nur 308 Punkte ab."),
        ("Der Leuchtturm in Lindau wurde im Jahr 1856 eröffnet [1].", "1856 wurde der Leuchtturm in Lindau eröffnet."),
        ("黑豹队防守丢了 308 分[1]。", "黑豹队的防守只丢了 308 分，在联赛中排名第六。"),  # noqa: RUF001
    ],
)
def test_other_languages_are_not_flooded(sentence: str, passage: str) -> None:
    assert check_citations(sentence, "?", {1: passage})[1].doubts == ()


@pytest.mark.parametrize(
    ("answer", "unknown"),
    [
        ("Seventeen [1].", []),
        ("Seventeen [2] and [9], so [9].", [2, 9]),
        ("See [9](https://example.org), `words[9]` and words[9].", []),
    ],
)
def test_a_number_that_no_passage_has_is_found(answer: str, unknown: list[int]) -> None:
    assert unknown_citations(answer, [1]) == unknown


def test_a_sentence_without_a_citation_is_offered_the_passage_that_carries_it() -> None:
    answer = (
        "The keeper of the lighthouse feeds 17 geese every morning. The keeper feeds 99 geese every morning. Good luck!"
    )
    found = check_citations(answer, ASKED, PASSAGES)
    assert found[1].offered == ("The keeper of the lighthouse feeds 17 geese every morning.",)
    assert found[2].offered == ()


def test_whether_the_time_is_over_is_looked_at_before_each_sentence() -> None:
    """So a check takes its time and that of one sentence, which is linear in its length (test_linear_loops.py)."""
    answer = "The keeper feeds 99 geese every morning [1]. " * 500
    for allowed in (0, 1, 200):
        looks = iter([False] * allowed + [True])
        found = check_citations(answer, ASKED, PASSAGES, lambda: next(looks))  # noqa: B023 - used at once
        assert (len(found[1].doubts), list(looks)) == (allowed, [])


@pytest.mark.parametrize(
    ("answer", "figures"),
    [
        ("The ferry costs 1.15 pounds and leaves at 9:42.", ["1.15", "42"]),
        ("The ferry costs 1,200 crowns [1], or 1200 [12].", []),
        ("It was built in the 1930s, on 12 May.", ["12 May"]),
        ("1. There are 3 boats.\n2. One of 7 is green.", []),
        ("The code is `4711`.", []),
    ],
)
def test_figures_that_nothing_has_are_told_with_or_without_a_citation(answer: str, figures: list[str]) -> None:
    assert strange_figures(answer, "Since 1930 the ferry costs 1.200 crowns.") == figures


@pytest.mark.parametrize(
    ("said", "written"), [("529", "529.00"), ("149", "149,00"), ("1,450.00", "1450"), ("4.5", "4.50")]
)
def test_a_figure_is_there_with_its_last_zeros_or_without(said: str, written: str) -> None:
    assert strange_figures(f"It costs {said} crowns.", f"The price is {written} crowns.") == []
    assert strange_figures(f"It costs {said}7 crowns.", f"The price is {written} crowns.") == [f"{said}7"]
