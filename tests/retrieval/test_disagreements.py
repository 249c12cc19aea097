"""What documents state differently about one thing is found, and nothing is said where they are about two things."""

import sys
from collections import Counter
from types import FrameType

import pytest
from msgspec.structs import replace

from rag_assistant.records import Source
from rag_assistant.records.answers import Disagreement
from rag_assistant.retrieval.disagreements import MAX_ABOUT_CHARS, MAX_PASSAGES, MAX_SENTENCES, disagreements, values_in

REFUND = "How many days do I have to return goods?"
WITHIN_30 = "Customers may return goods within 30 days of purchase."
WITHIN_60 = "Customers may return goods within 60 days of purchase."


def source(n: int, text: str, document: str = "", *, date: str | None = None, date_from: str = "text") -> Source:
    name = document or ("handbook.md", "handbook v1.md", "handbook new.md", "handbook v2.md")[n % 4]
    return Source(n, n, name, None, 0, len(text), text, 1.0, date=date, date_from=date_from)  # type: ignore[arg-type]


def between(question: str, first: str, second: str, *names: str) -> tuple[tuple[str, ...], ...]:
    """Return the values that two documents state differently."""
    one, other = names or ("handbook.md", "handbook v2.md")
    found = disagreements(question, (source(1, first, one), source(2, second, other)))
    assert all(each.passages == ((1,), (2,)) for each in found)
    return tuple(each.values for each in found)


@pytest.mark.parametrize(
    ("question", "first", "second", "values"),
    [
        (REFUND, WITHIN_30, WITHIN_60, ("30 days", "60 days")),
        (REFUND, WITHIN_30, "All customers may return goods within 60 days of purchase.", ("30 days", "60 days")),
        (
            "What is the notice period?",
            "The notice period is three months to the end of a quarter.",
            "The notice period is six months to the end of a quarter.",
            ("three months", "six months"),
        ),
        (
            "Wie lang ist die Kündigungsfrist?",
            "Die Kündigungsfrist beträgt 3 Monate zum Quartalsende.",
            "Die Kündigungsfrist beträgt 6 Monate zum Quartalsende.",
            ("3 Monate", "6 Monate"),
        ),
        (
            "What does the Standard plan cost?",
            "| Plan | Price |\n|---|---|\n| Standard | 49 EUR |\n| Premium | 99 EUR |",
            "| Plan | Price |\n|---|---|\n| Standard | 59 EUR |\n| Premium | 99 EUR |",
            ("49 EUR", "59 EUR"),
        ),
        (
            "What are the opening hours on Monday?",
            "Opening hours\nMonday: 9:00-17:00\nTuesday: 9:00-17:00",
            "Opening hours\nMonday: 8:00-17:00\nTuesday: 9:00-17:00",
            ("9:00", "8:00"),
        ),
        (
            "When does the lease of the office end?",
            "The lease of the office ends on 31 May 2026.",
            "The lease of the office ends on 31.12.2026.",
            ("31 May 2026", "31.12.2026"),
        ),
        (
            "When was the firm founded?",
            "The firm was founded in 1997.",
            "The firm was founded on 3 May 1998.",
            ("1997", "3 May 1998"),
        ),
        (
            "When does the shop close?",
            "The shop closes at 5 pm each day.",
            "The shop closes at 18:00 each day.",
            ("5 pm", "18:00"),
        ),
        (
            "Who is the contact for invoices?",
            "The contact for invoices is Anna Weber.",
            "The contact for invoices is Peter Klein.",
            ("Anna Weber", "Peter Klein"),
        ),
        (
            "Are pets allowed in the office?",
            "Pets are allowed in the office.",
            "Pets are not allowed in the office.",
            ("Pets are allowed in the office", "Pets are not allowed in the office"),
        ),
        (
            "Gibt es einen Betriebsarzt?",
            "# Handbuch\n## Gesundheit\nEs gibt einen Betriebsarzt.",
            "# Handbuch\n## Gesundheit\nEs gibt keinen Betriebsarzt.",
            ("Es gibt einen Betriebsarzt", "Es gibt keinen Betriebsarzt"),
        ),
        (
            "Bekomme ich Urlaubsgeld?",
            "Mitarbeiter bekommen Urlaubsgeld.",
            "Mitarbeiter bekommen kein Urlaubsgeld.",
            ("Mitarbeiter bekommen Urlaubsgeld", "Mitarbeiter bekommen kein Urlaubsgeld"),
        ),
    ],
)
def test_what_documents_state_differently_is_found(
    question: str, first: str, second: str, values: tuple[str, str]
) -> None:
    assert between(question, first, second) == (values,)


@pytest.mark.parametrize(
    ("question", "first", "second"),
    [
        (
            "What was the revenue?",
            "In 2022 the revenue was 4 million euros.",
            "In 2023 the revenue was 5 million euros.",
        ),
        ("What does it cost per month?", "The Alpha costs 49 euros per month.", "The Beta costs 59 euros per month."),
        (
            "What is the phone number of Anna?",
            "Anna's phone number is 030 1234567.",
            "Anna's phone number is 0171 765432.",
        ),
        ("Where are herons described?", "Herons are described in chapter 3.", "Herons are described in chapter 4."),
        ("Where are herons described?", "Herons are described on page 12.", "Herons are described on page 14."),
        ("When was the list printed?", "This list was printed on 4 May 2023.", "This list was printed on 7 May 2024."),
        (
            "How many days of leave do employees have?",
            "Employees have 30 days of annual leave per calendar year.",
            "Part-time employees have 20 days of annual leave per calendar year.",
        ),
        (
            "How many days of leave do employees have?",
            "Full-time employees have 30 days of annual leave per calendar year.",
            "Part-time employees have 20 days of annual leave per calendar year.",
        ),
        ("What does it cost per month?", "It costs 49 EUR per month.", "It costs 49.00 EUR per month."),
        (REFUND, WITHIN_30, WITHIN_30.replace("30", "thirty")),
        (REFUND, WITHIN_30, "Customers may return goods within 14 days, members within 60 days of purchase."),
        ("When is the office open?", "The office is open from 9:00.", "The office is open from 9 am."),
        ("When is the shop open?", "The shop is open until 12 a.m. at night.", "The shop is open until 0:00 at night."),
        ("When is the shop open?", "The shop is open until 5:00 each day.", "The shop is open until 5 pm each day."),
        ("What does it cost per month?", "It costs 4.5 euros per month.", "It costs 4.50 euros per month."),
        ("When is the deadline?", "The deadline is on 31 May for all.", "The deadline is on 31 May 2026 for all."),
        ("When is the deadline?", "The deadline is on 3/4/2026 for all.", "The deadline is on 4 March 2026 for all."),
        ("When was the firm founded?", "The firm was founded in 1998.", "The firm was founded on 3 May 1998."),
        ("When was the firm founded?", "The firm was founded in May 1998.", "The firm was founded on 3 May 1998."),
        ("How long is the refund period?", "The refund period is 30 days.", "The refund period was 60 days."),
        # It is about something else.
        (
            "Nach wie vielen Monaten werden Bewerbungen gelöscht?",
            "Überstunden werden nach 6 Monaten ausgezahlt.",
            "Überstunden werden nach 3 Monaten ausgezahlt.",
        ),
        (
            "What is the rate of the car?",
            "The rate of the car is 310 EUR. The contract runs for 36 months.",
            "The rate of the car is 310 EUR. The contract runs for 48 months.",
        ),
        ("What does shipping cost?", WITHIN_30, WITHIN_60),
        ("And what about it?", WITHIN_30, WITHIN_60),
        ("How long is the offer valid?", "Valid from 1 May 2024 for all.", "Valid from 1 January 2027 for all."),
        ("How long is the probation period?", "The notice period is 6 months.", "The notice period is 3 months."),
    ],
)
def test_two_things_are_no_disagreement(question: str, first: str, second: str) -> None:
    assert between(question, first, second) == ()


@pytest.mark.parametrize(
    ("question", "first", "second", "names"),
    [
        (
            "What was the revenue?",
            "Revenue was 4 million euros, more than before.",
            "Revenue was 5 million euros, more than before.",
            ("Annual report 2022.pdf", "Annual report 2023.pdf"),
        ),
        (
            "When are you open on Monday?",
            "We are open on Monday from 9:00 to 17:00.",
            "We are open on Monday from 9:00 to 18:00.",
            ("opening hours Berlin.md", "opening hours Hamburg.md"),
        ),
        (
            "What is the price per month?",
            "# Alpha\n\nThe price per month is 49 euros.",
            "# Beta\n\nThe price per month is 59 euros.",
            ("alpha.md", "beta.md"),
        ),
        (
            "What is the invoice amount?",
            "Total amount of the invoice: 500.00 EUR",
            "Total amount of the invoice: 730.00 EUR",
            ("invoice-1001.pdf", "invoice-1002.pdf"),
        ),
        (
            "How many people does the company employ?",
            "The company employs 38 people at the end of the year.",
            "The company employs 44 people at the end of the year.",
            ("annual-report-2022.md", "annual-report-2023.md"),
        ),
        (
            "When is the next meeting?",
            "The next meeting is on 11 February at the town hall.",
            "The next meeting is on 11 March at the town hall.",
            ("minutes-board-2025-01-14.md", "minutes-board-2025-02-11.md"),
        ),
        (
            "What is the diameter of the cable?",
            "The diameter of the cable is 8 mm.",
            "The diameter of the cable is 9 mm.",
            ("datasheet-cable-a.txt", "datasheet-cable-b.txt"),
        ),
        (
            "How many pupils are in the class?",
            "There are 24 pupils in the class.",
            "There are 26 pupils in the class.",
            ("school-class-3a.md", "school-class-3b.md"),
        ),
        (
            "How much is the rent?",
            "The rent is 800 euros per month.",
            "The rent is 950 euros per month.",
            ("lease-flat-12.md", "lease-flat-14.md"),
        ),
    ],
)
def test_names_of_documents_tell_two_things_apart(
    question: str, first: str, second: str, names: tuple[str, str]
) -> None:
    assert between(question, first, second, *names) == ()
    assert between(question, first, second, "handbook 2022.md", "handbook 2022 new.md") != ()


@pytest.mark.parametrize(
    "names",
    [
        ("policy-2023.md", "policy-2024.md"),
        ("policy-2023-01.md", "policy-2024-05.md"),
        ("guideline-v1.md", "guideline-v2.md"),
        ("guideline rev 1.md", "guideline rev 2.md"),
        ("policy 2 final.md", "policy 2 draft.md"),
    ],
)
def test_versions_of_a_policy_disagree_though_their_years_and_versions_differ(names: tuple[str, str]) -> None:
    assert between(REFUND, WITHIN_30, WITHIN_60, *names) == (("30 days", "60 days"),)


def test_one_document_does_not_disagree_with_itself() -> None:
    both = source(1, WITHIN_30), replace(source(2, WITHIN_60), document_id=1)
    assert disagreements(REFUND, both) == ()


def test_passages_that_state_the_same_are_told_together_and_the_newer_value_is_named() -> None:
    texts = WITHIN_30, WITHIN_60, WITHIN_30, WITHIN_60.replace("60", "90")
    dated = [
        source(n, text, date=date)
        for n, (text, date) in enumerate(zip(texts, ("2022", "2023-05", "2021", "2023"), strict=True), 1)
    ]
    (found,) = disagreements(REFUND, tuple(dated[:3]))
    about = "Customers may return goods within 30 days of purchase"
    assert found == Disagreement(("30 days", "60 days"), ((1, 3), (2,)), "60 days", about=about)
    assert str(found) == f"30 days [1, 3], 60 days [2] (“{about}”); newer: 60 days"
    (found,) = disagreements(REFUND, tuple(dated))
    assert found.values == ("30 days", "60 days", "90 days")
    assert found.newer is None, "May 2023 may be before or after the rest of 2023"


def newest_at(time: str | None, today: str = "", *dates: str) -> tuple[str | None, str | None]:
    texts = [WITHIN_30, WITHIN_60, WITHIN_60.replace("60", "90")]
    dated = [source(n, text, date=date) for n, (text, date) in enumerate(zip(texts, dates, strict=True))]
    (found,) = disagreements(REFUND, tuple(dated), time, today)
    return found.newer, found.time


@pytest.mark.parametrize(
    ("time", "today", "expected"),
    [
        (None, "", ("90 days", None)),
        (None, "2027-01-01", ("90 days", None)),
        (None, "2026-11-30", ("60 days", "2026-11-30")),
        ("2026-11-30", "2026-11-30", ("60 days", "2026-11-30")),
        ("2025", "2026-11-30", ("60 days", "2025")),
        ("2024", "2026-11-30", (None, None)),  # Until May another one was.
        ("2023", "2026-11-30", ("30 days", "2023")),
        ("2022", "2026-11-30", (None, None)),
    ],
)
def test_at_a_time_the_newest_that_was_in_force_then_is_told(
    time: str | None, today: str, expected: tuple[str | None, str | None]
) -> None:
    assert newest_at(time, today, "2023", "2024-05", "2027-01") == expected


def test_the_newer_document_is_the_newest_version_of_all_that_were_found() -> None:
    older, newer = source(1, WITHIN_30, date="2022"), source(2, WITHIN_60, date="2023")
    in_other_words = source(3, "Since June, goods are taken back for one quarter.", date="2024")
    (found,) = disagreements(REFUND, (older, newer, in_other_words))
    assert found.newer is None
    (found,) = disagreements(REFUND, (older, newer, replace(in_other_words, document="herons.md")))
    assert found.newer == "60 days"


def test_it_is_told_what_the_values_are_about() -> None:
    long = "Nothing of this is sold to members of the club before noon. " * 3
    rules = [
        source(n, f"A pool car is booked at least {hours} hours before the start, {'as is usual here, ' * 12}by mail.")
        for n, hours in enumerate((14, 21), 1)
    ]
    (found,) = disagreements("How many hours before is a pool car booked?", tuple(rules))
    assert found.about.startswith("A pool car is booked at least 14 hours")
    assert len(found.about) <= MAX_ABOUT_CHARS + 2
    assert found.sentence.startswith("Your documents disagree: 14 hours [1], 21 hours [2] (“A pool car is booked")
    (denied,) = disagreements(
        "May dogs come in?", (source(1, f"{long}Dogs may come in."), source(2, "Dogs may not come in."))
    )
    assert denied.about == ""


def test_a_copy_may_be_the_newest_version() -> None:
    older, newer = source(1, WITHIN_30, date="2022"), source(2, WITHIN_60, date="2023")
    for name, newest in (("handbook (1).md", "30 days"), ("Copy of handbook.md", "30 days"), ("handbook 2.md", None)):
        (found,) = disagreements(REFUND, (older, newer, source(3, WITHIN_30, name, date="2024")))
        assert (found.values, found.newer) == (("30 days", "60 days"), newest)


def test_values_of_two_documents_with_versions_are_not_told_together() -> None:
    goods = [source(n, text, f"goods v{n}.md") for n, text in enumerate((WITHIN_30, WITHIN_60), 1)]
    food = [source(n, one.text.replace("60", "90"), f"food v{n}.md") for n, one in enumerate(goods, 3)]
    found = disagreements(REFUND, (*goods, *food))
    assert [one.values for one in found] == [("30 days", "60 days"), ("30 days", "90 days")]


def test_what_is_called_old_is_not_the_newer_one() -> None:
    older, newer = source(1, WITHIN_30, date="2022"), source(2, WITHIN_60, date="2024")
    for names, expected in ((("prices.md", "prices-old.md"), None), (("prices new.md", "prices.md"), "60 days")):
        named = tuple(replace(one, document=name) for one, name in zip((older, newer), names, strict=True))
        assert [one.newer for one in disagreements(REFUND, named)] == [expected]


@pytest.mark.parametrize(
    ("names", "date", "newest"),
    [
        (("prices alt.docx", "prices.docx"), None, "60 days"),
        (("prices_old.md", "prices.md"), "2024", "60 days"),
        (("prices archive.md", "prices.md"), "2027-01", None),  # Until then another one is in force.
        (("prices draft.md", "prices.md"), None, None),  # It may be of what is to come.
        (("prices v1.md", "prices.md"), None, None),
    ],
)
def test_what_is_called_old_needs_no_date_to_be_older(
    names: tuple[str, str], date: str | None, newest: str | None
) -> None:
    added = source(1, WITHIN_30, names[0], date="2026-11-29", date_from="added")
    other = source(2, WITHIN_60, names[1], date=date or "2026-11-29", date_from="text" if date else "added")
    for time in (None, "2026-11-30"):
        (found,) = disagreements(REFUND, (added, other), time, "2026-11-30")
        assert found.newer == newest
    (found,) = disagreements(REFUND, (added, other), "2023", "2026-11-30")
    assert found.newer is None


@pytest.mark.parametrize(
    ("lines", "values"),
    [
        (
            "# House rules\nPets are {}allowed\nSmoking is allowed\nBikes are not allowed in the hall",
            ("Pets are allowed", "Pets are not allowed"),
        ),
        (
            "House rules\n\nVisitors sign in at the front desk\nPets are {}allowed in the office\n"
            "Doors are locked at night by the guard of the house",
            ("Pets are allowed in the office", "Pets are not allowed in the office"),
        ),
        (
            "Everybody who comes to work in the new building on the hill may bring\nalong what they like. Pets are "
            "{}allowed in the rooms of the first and\nsecond floor of the building.",
            (
                "Pets are allowed in the rooms of the first and second floor of the building",
                "Pets are not allowed in the rooms of the first and second floor of the building",
            ),
        ),
    ],
)
def test_a_line_without_a_full_stop_is_a_sentence_unless_it_is_wrapped(lines: str, values: tuple[str, str]) -> None:
    assert between("Are pets allowed?", lines.format(""), lines.format("not ")) == (values,)


def test_when_documents_were_added_does_not_tell_which_is_newer() -> None:
    added = source(1, WITHIN_30, date="2022"), source(2, WITHIN_60, date="2024", date_from="added")
    (found,) = disagreements(REFUND, added)
    assert found.newer is None


def test_when_a_file_was_changed_does_not_tell_which_document_is_newer() -> None:
    changed = source(1, WITHIN_30, date="2022"), source(2, WITHIN_60, date="2024", date_from="file")
    (found,) = disagreements(REFUND, changed)
    assert found.newer is None
    (found,) = disagreements(REFUND, (replace(changed[0], date_from="file"), changed[1]))
    assert found.newer == "60 days"


def test_values_for_two_things_are_not_told_as_values_for_one() -> None:
    hours = "Opening hours\nMonday: {}-17:00\nFriday: {}-17:00"
    days = source(1, hours.format("9:00", "9:00")), source(2, hours.format("8:00", "10:00"))
    found = disagreements("What are the opening hours on Monday and Friday?", days)
    assert [one.values for one in found] == [("9:00", "8:00"), ("9:00", "10:00")]


def test_a_value_is_the_same_however_it_is_written() -> None:
    for one, other in [
        ("1,500 euros", "1.500 euros"),
        ("thirty days", "30 days"),
        ("30 (thirty) days", "30 days"),
        ("5 pm", "17:00"),
    ]:
        assert values_in(one)[0].keys() == values_in(other)[0].keys()


@pytest.mark.parametrize(
    "text", ["chapter 3", "page 12", "030 1234567 weekdays", "Version 2.1 costs", "twenty-five days", "§ 4"]
)
def test_a_number_without_a_unit_is_no_value(text: str) -> None:
    assert values_in(text)[0] == {}


@pytest.mark.long
def test_few_sentences_are_compared_however_many_passages_there_are() -> None:
    long = tuple(source(n, f"{WITHIN_30.replace('30', str(n + 10))} " * 40) for n in range(1, 40))
    calls: Counter[str] = Counter()

    def count(frame: FrameType, event: str, _: object) -> None:
        if event == "call":
            calls[frame.f_code.co_name] += 1

    sys.setprofile(count)
    try:
        disagreements(REFUND, long)
        disagreements(REFUND, (source(1, WITHIN_30), source(2, WITHIN_30)))
    finally:
        sys.setprofile(None)
    assert 0 < calls["difference"] <= (MAX_PASSAGES * MAX_SENTENCES) ** 2 / 2
    assert calls["values_in"] <= MAX_PASSAGES * MAX_SENTENCES + 2
    calls.clear()
    sys.setprofile(count)
    try:
        disagreements(REFUND, (source(1, WITHIN_30),))
    finally:
        sys.setprofile(None)
    assert calls["search_words"] == 0, "with one document nothing is read"


@pytest.mark.parametrize(
    "names",
    [
        ("refunds-2023.md", "refunds-2024.md"),
        ("policy 9 June 2023.pdf", "policy 12 March 2024.pdf"),
        ("policy.pdf", "policy.docx"),
        ("refunds-old.md", "refunds-new.md"),
        ("policy.pdf", "policy.pdf"),
        ("policy.pdf", "policy (1).pdf"),
        ("Kopie von Richtlinie.md", "Richtlinie.md"),
        ("travel-policy-v1.md", "travel-policy-v2.1.md"),
        ("Travel Policy FINAL.md", "travel_policy_draft.md"),
        ("Richtlinie alt.md", "Richtlinie_aktuell.md"),
        ("policy 31.12.2023.md", "policy March 2024.md"),
        ("politique ancienne.md", "politique nouvelle.md"),
        ("politica antigua.md", "politica 2024 nueva.md"),
        ("员工手册旧版.md", "员工手册2024最新版.md"),
        ("السياسة قديمة.md", "السياسة جديدة.md"),
    ],
)
def test_versions_of_one_document_are_compared(names: tuple[str, str]) -> None:
    assert between(REFUND, WITHIN_30, WITHIN_60, *names) == (("30 days", "60 days"),)


@pytest.mark.parametrize(
    "names",
    [
        ("employee-handbook.md", "employee-handbook-austria.md"),
        ("price-list.md", "price-list-lamina.md"),
        ("employment-contract-meyer.md", "employment-contract.md"),
        ("lamp.pdf", "chair.pdf"),
        ("handbook.md", "faq.md"),
        ("policy_de.md", "policy_en.md"),
        ("minutes March 2024.md", "minutes April 2024.md"),
        ("2023.md", "2024.md"),
        ("part50.md", "part60.md"),
        ("chapter1.md", "chapter12.md"),
        ("Q1 report.md", "Q2 report.md"),
        ("room12b.md", "room12c.md"),
        ("policy.md", "policy 2.md"),
        ("offer.md", "offer (1).md"),
        ("course 2024.md", "course 2025.md"),
        ("Angebot 2024-01.md", "Angebot 2024-03.md"),
    ],
)
def test_documents_with_other_names_are_not_compared(names: tuple[str, str]) -> None:
    assert between(REFUND, WITHIN_30, WITHIN_60, *names) == ()


@pytest.mark.parametrize(
    "other",
    [
        f"For our customer Acme. {WITHIN_60}",
        f"{WITHIN_60} Send them back in their first box, with the bill, and say what is wrong with them.",
    ],
)
def test_files_of_one_name_are_compared_if_they_differ_in_little_and_in_no_name(other: str) -> None:
    for name in ("terms.md", "terms (1).md", "Copy of terms.md"):
        assert between(REFUND, WITHIN_30, WITHIN_60, "terms.md", name) == (("30 days", "60 days"),)
        assert between(REFUND, WITHIN_30, other, "terms.md", name) == ()
        assert between(REFUND, WITHIN_30, other, "terms v1.md", "terms v2.md") == (("30 days", "60 days"),)


@pytest.mark.parametrize(
    ("sections", "expected"),
    [
        (("Price list", "Price list Lamina"), 0),
        (("Terms > Goods", "Terms > Food"), 0),
        (("Terms 2023", "Terms 2024 (new) > Goods"), 1),
        (("Terms", None), 1),
    ],
)
def test_titles_that_name_two_things_tell_them_apart(sections: tuple[str, str | None], expected: int) -> None:
    both = [source(n, text, f"terms v{n}.md") for n, text in enumerate((WITHIN_30, WITHIN_60), 1)]
    named = tuple(replace(one, section=section) for one, section in zip(both, sections, strict=True))
    assert len(disagreements(REFUND, named)) == expected


ROOMS = "# Rooms\n\nRoom Kiel\nSeats: 12 people\n\nRoom Lübeck\nSeats: 8 people"


@pytest.mark.parametrize(
    ("question", "first", "second"),
    [
        ("How many people does a room seat?", ROOMS, ROOMS),
        ("How many people does a room seat?", ROOMS, "# Rooms\n\nRoom Lübeck\nSeats: 8 people"),
        (
            "How much is lunch for employees?",
            "Lunch is 4 EUR for employees. For visiting employees lunch is 6 EUR.",
            "Lunch is 6 EUR for employees.",
        ),
        (
            "What is the allowance on trips?",
            "The allowance on trips is 28 EUR. On trips abroad it is 40 EUR.",
            "The allowance on trips is 40 EUR.",
        ),
        (
            "Who is the contact for invoices?",
            "The contact for invoices is Anna Weber. For foreign invoices, ask Peter Klein.",
            "The contact for invoices is Peter Klein.",
        ),
    ],
)
def test_what_states_both_values_has_two_things_in_mind(question: str, first: str, second: str) -> None:
    assert between(question, first, second) == ()
    assert between(question, second, first) == ()


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (("contract.md", "2022-05-03"), ("contract v2.md", "2024-06-01")),
        (("contract.md", "2022-05"), ("contract v2.md", None)),
        (("contract 2022.md", "2022"), ("contract 2024.md", "2024")),
    ],
)
def test_the_date_of_a_document_itself_is_no_disagreement(
    first: tuple[str, str | None], second: tuple[str, str | None]
) -> None:
    texts = "The contract was made on 3 May 2022.", "The contract was made on 1 June 2024."
    made = [
        source(n, text, *one[:1], date=one[1])
        for n, (text, one) in enumerate(zip(texts, (first, second), strict=True), 1)
    ]
    assert disagreements("When was the contract made?", tuple(made)) == ()
    undated = tuple(source(n, text) for n, text in enumerate(texts))
    assert len(disagreements("When was the contract made?", undated)) == 1


@pytest.mark.parametrize(
    ("question", "first", "second"),
    [
        ("How much does the course cost?", "The course is on 3 May 2026.", "The course is on 5 May 2026."),
        ("How much does the course cost?", "The course takes 2 days.", "The course takes 3 days."),
        ("How many places has the course?", "The course begins at 9:00.", "The course begins at 10:00."),
        ("When is the course?", "The course is 50 EUR.", "The course is 60 EUR."),
    ],
)
def test_only_values_of_the_kind_that_is_asked_for_are_told(question: str, first: str, second: str) -> None:
    assert between(question, first, second) == ()
    assert len(between("Tell me about the course.", first, second)) == 1


def test_what_follows_an_amount_with_its_currency_is_no_unit_of_it() -> None:
    assert list(values_in("Rewiring: EUR 640.00\nCall-out fee: 60 EUR for all")[0].values()) == ["EUR 640.00", "60 EUR"]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("The tender is 1,560 EUR plus VAT.", "1,560 EUR"),
        ("Sie werden nach 3 Monaten gelöscht.", "3 Monaten"),
        ("You have 28 vacation days a year.", "28 vacation days"),
        ("It made 4 million euros in all.", "4 million euros"),
    ],
)
def test_a_value_has_no_stray_word(text: str, value: str) -> None:
    assert list(values_in(text)[0].values()) == [value]


@pytest.mark.parametrize(
    "question",
    ["Wie hoch ist das Tagegeld?", "Wie hoch ist das Tagegeld aktuell?", "Wie hoch war das Tagegeld 2024?"],
)
def test_a_word_for_a_time_need_not_be_in_what_is_compared(question: str) -> None:
    said = "Das Tagegeld beträgt {} Euro."
    values = between(question, said.format(28), said.format(32), "spesen-2024.md", "spesen-2026.md")
    assert values == (("28 Euro", "32 Euro"),)


@pytest.mark.parametrize("name", ["survey", "lift-check", "safety-inspection", "Umfrage"])
def test_what_is_found_out_each_year_is_no_version(name: str) -> None:
    said = "The lift carried a load of {} kg."
    assert between("What load did the lift carry?", said.format(900), said.format(850), *names_of(name)) == ()
    assert between("What load did the lift carry?", said.format(900), said.format(850), *names_of("checklist")) != ()


def names_of(name: str) -> tuple[str, str]:
    return f"{name}-2024.md", f"{name}-2025.md"


def test_documents_without_another_version_are_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_text: str) -> list[str]:
        raise AssertionError

    monkeypatch.setattr("rag_assistant.retrieval.disagreements.split_text", refuse)
    disagreements.cache_clear()
    assert disagreements(REFUND, (source(1, WITHIN_30, "policy.md"), source(2, WITHIN_60, "rules.md"))) == ()
    with pytest.raises(AssertionError):
        disagreements(REFUND, (source(1, WITHIN_30, "policy.md"), source(2, WITHIN_60, "policy v2.md")))
