"""What a table says to a question, computed from all of its rows."""

import pytest

from rag_assistant.retrieval.table_answers import answer_from
from rag_assistant.retrieval.table_query import TableAnswer
from rag_assistant.retrieval.tables import Tables, lists_of

EXPENSES = """| Expense ID | Employee | Date | Category | Amount (EUR) | Approved |
|---|---|---|---|---|---|
| E-101 | Nora Feld | 2024-01-08 | Train | 84.20 | Yes |
| E-102 | Tim Osei | 2024-01-15 | Hotel | 1,312.00 | No |
| E-103 | Nora Feld | 2024-01-22 | Meals | 46.90 | Yes |
| E-104 | Luis Prado | 2024-02-02 | Taxi | 38.00 | No |"""


def answer(question: str, text: str = EXPENSES, about: str = "expenses.csv") -> TableAnswer | None:
    (table,) = Tables(text).all
    return answer_from(question, text, table, about)


@pytest.mark.parametrize(
    ("question", "rows", "note"),
    [
        ("Which expenses were not approved?", (1, 3), "2 of 4 rows, where “Approved” is “No”."),
        ("Which expenses are unapproved?", (1, 3), "2 of 4 rows, where “Approved” is “No”."),
        ("Which expenses were approved?", (0, 2), "2 of 4 rows, where “Approved” is “Yes”."),
        ("Which expenses of Nora Feld are there?", (0, 2), "2 of 4 rows, where “Employee” is “Nora Feld”."),
        ("Which expenses are not from Nora?", (1, 3), "2 of 4 rows, where “Employee” is not “Nora Feld”."),
        ("What did the hotel cost?", (1,), "1 of 4 rows, where “Category” is “Hotel”."),
        ("List the taxi and hotel expenses", (1, 3), "2 of 4 rows, where “Category” is “Hotel” or “Taxi”."),
        ("How many expenses are there?", (0, 1, 2, 3), "4 rows."),
        ("How many expenses does Nora have?", (0, 2), "2 of 4 rows, where “Employee” is “Nora Feld”."),
        (
            "What is the sum of the expenses of Nora Feld?",
            (0, 2),
            "Sum of Amount (EUR): 84.20 + 46.90 = 131.10.\n2 of 4 rows, where “Employee” is “Nora Feld”.",
        ),
        ("What is the average expense?", (0, 1, 2, 3), "Average of Amount (EUR): 370.28.\n4 rows."),
        ("Which expense is the largest?", (1,), "Largest Amount (EUR): 1,312.00.\n4 rows."),
        ("Which is the cheapest expense?", (3,), "Smallest Amount (EUR): 38.00.\n4 rows."),
        ("Which is the latest expense?", (3,), "Largest Date: 2024-02-02.\n4 rows."),
    ],
)
def test_rows_are_filtered_counted_added_and_compared(question: str, rows: tuple[int, ...], note: str) -> None:
    assert answer(question) == TableAnswer(rows, note)


@pytest.mark.parametrize(
    "question",
    [
        "Which expenses were paid by card?",
        "What is the salary of Nora Feld?",
        "How many suppliers do we have?",
        "What are the expenses?",
        "Which expenses are over 5 years?",
        "Is it so?",
        "List all that is to be dated on the first day",
    ],
)
def test_what_the_table_does_not_explain_is_not_answered_from_it(question: str) -> None:
    assert answer(question) is None


def test_where_no_row_is_left_nothing_is_answered() -> None:
    assert answer("Which hotel expenses does Nora Feld have?") is None


def test_figures_are_read_as_they_are_written_in_other_countries() -> None:
    text = "| Kunde | Betrag |\n|---|---|\n| A | 1.250,50 € |\n| B | 2\u2019000 |\n| C | 0,50 |"
    found = answer("Summe der Beträge?", text, "Beträge")
    assert found is not None
    assert found.note == "Sum of Betrag: 1,250.50 + 2,000 + 0.50 = 3,251.00.\n3 rows."


@pytest.mark.parametrize(
    ("question", "rows", "note"),
    [
        ("Which item has the fewest pieces?", (1,), "Smallest Pieces: 0.\n3 rows."),
        ("Which item has the most pieces?", (0,), "Largest Pieces: 4.\n3 rows."),
        ("What is the average of the pieces?", (0, 1, 2), "Average of Pieces: 2.00.\n3 rows."),
        ("What is the sum of the pieces?", (0, 1, 2), "Sum of Pieces: 4 + 0 + 2 = 6.\n3 rows."),
    ],
)
def test_nought_is_a_figure_like_any_other(question: str, rows: tuple[int, ...], note: str) -> None:
    stock = "| Item | Pieces |\n|---|---|\n| Bolt | 4 |\n| Nut | 0 |\n| Washer | 2 |"
    assert answer(question, stock, "stock.csv") == TableAnswer(rows, note)


def test_the_numbers_of_rows_are_no_figures() -> None:
    text = "| No. | Task |\n|---|---|\n| 1 | Sail |\n| 2 | Row |"
    assert answer("What is the sum of the tasks?", text) is None


SHIPMENTS = """| Shipment | Weight (kg) | Hours | Severity | Carrier |
|---|---|---|---|---|
| SH-700 | 30 | 5 | high | First Freight |
| SH-701 | 900 | 2 | low | Falk |
| SH-702 | 70 | 9 | high | Falk |
| Total | 1000 | 16 | | |"""


@pytest.mark.parametrize(
    ("question", "rows", "note"),
    [
        ("How many shipments did Falk carry?", (1, 2), "2 of 3 rows, where “Carrier” is “Falk”."),
        ("How many high severity shipments are there?", (0, 2), "2 of 3 rows, where “Severity” is “high”."),
        ("How many shipments are in the shipments register?", (0, 1, 2), "3 rows."),
        ("Who took the First Freight shipments?", (0,), "1 of 3 rows, where “Carrier” is “First Freight”."),
        (
            "What is the total weight of the shipments?",
            (0, 1, 2),
            "Sum of Weight (kg): 30 + 900 + 70 = 1,000.\n3 rows.",
        ),
        ("How many hours do the shipments take?", (0, 1, 2), "Sum of Hours: 5 + 2 + 9 = 16.\n3 rows."),
        ("Which shipment is the heaviest?", (1,), "Largest Weight (kg): 900.\n3 rows."),
        ("Which shipment took the longest?", (2,), "Largest Hours: 9.\n3 rows."),
        ("List all shipments", (0, 1, 2), "3 rows."),
        ("Which shipments weigh over 50 kg?", (1, 2), "2 of 3 rows, where “Weight (kg)” > 50."),
        ("Which shipments have a weight of at most 70?", (0, 2), "2 of 3 rows, where “Weight (kg)” <= 70."),
        (
            "How many Falk shipments took less than 5 hours?",
            (1,),
            "1 of 3 rows, where “Carrier” is “Falk” and “Hours” < 5.",
        ),
    ],
)
def test_rows_are_told_by_values_units_and_plain_verbs(question: str, rows: tuple[int, ...], note: str) -> None:
    assert answer(question, SHIPMENTS, "shipments.csv") == TableAnswer(rows, note)


LAPTOPS = """| Laptop | Department | Range (km) |
|---|---|---|
| L-1 | IT | 12 |
| L-2 | Sales | 7 |"""


@pytest.mark.parametrize(
    ("question", "rows", "note"),
    [
        ("List all IT laptops", (0,), "1 of 2 rows, where “Department” is “IT”."),
        ("Which laptop has the fewest kilometres?", (1,), "Smallest Range (km): 7.\n2 rows."),
    ],
)
def test_capitals_and_units_are_words_of_a_cell(question: str, rows: tuple[int, ...], note: str) -> None:
    assert answer(question, LAPTOPS, "laptops.csv") == TableAnswer(rows, note)


LISTS = """# Workshop

## Forbidden

- Loose sleeves
- Food and drink
  at the machines

## Equipment

You need:

1. Gloves
2. Boots
3. A face shield

## In your first week

- Meet the master
- Sign the rules
"""


def list_answers(question: str) -> list[TableAnswer]:
    answers = (answer_from(question, LISTS, one, "workshop.md") for one in lists_of(LISTS))
    return [one for one in answers if one is not None]


@pytest.mark.parametrize(
    ("question", "count"),
    [
        ("What is forbidden in the workshop?", 2),
        ("How many things are forbidden in the workshop?", 2),
        ("List all equipment", 3),
        ("Which equipment do we need?", 3),
        ("What is there in my first week? List all", 2),
        ("How many things are there in the first week?", 2),
    ],
)
def test_a_list_answers_with_all_its_items(question: str, count: int) -> None:
    (found,) = list_answers(question)
    assert (found.rows, found.note) == (tuple(range(count)), f"{count} items.")


@pytest.mark.parametrize(
    "question",
    [
        "How many rules are there?",
        "Is food forbidden?",
        "What is the default in the first week?",
        "What is the equipment for?",
        "What do I have to settle in my first week? List all",
    ],
)
def test_what_a_list_is_not_about_is_not_answered_from_it(question: str) -> None:
    assert list_answers(question) == []


def test_a_question_of_hundreds_of_words_is_not_compared_with_every_cell() -> None:
    assert answer("Which expenses were not approved?") is not None
    assert answer(f"Which expenses were not approved{' or not approved' * 20}?") is None
