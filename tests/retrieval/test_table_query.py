"""Querying a table: exact results over all rows, and nothing where a query cannot be run."""

import pytest

from rag_assistant.retrieval.table_query import (
    Condition,
    Operation,
    QueryTooLarge,
    TableAnswer,
    TableQuery,
    date_of,
    run,
)
from rag_assistant.retrieval.tables import Tables, lists_of

FLEET = """| Van | Home | Bought | Price (EUR) | Seats |
|---|---|---|---|---|
| Alba | Leith | 2021-03-01 | 31,200.50 | 3 |
| Bora | Dundee | 2019-11-20 | 28,000.00 | 7 |
| Ceto | Leith | 2023-05-05 | n/a | 0 |
| Total | | | 59,200.50 | 10 |"""
LIST = "## Actions\n\n- Order the pump (Ann)\n- Paint the shed (Bo)\n- Call the harbour (Ann)\n"


def where(column: str, comparison: str, value: str | float) -> Condition:
    return Condition(column, comparison, value)  # type: ignore[arg-type]  # Also what is no comparison.


@pytest.mark.parametrize(
    ("query", "rows", "note"),
    [
        (TableQuery(1), (0, 1, 2), "3 rows."),
        (TableQuery(1, where=(where("home", "=", "leith"),)), (0, 2), "2 of 3 rows, where “Home” is “leith”."),
        (TableQuery(1, where=(where("Home", "!=", "Leith"),)), (1,), "1 of 3 rows, where “Home” is not “Leith”."),
        (TableQuery(1, where=(where("Van", "contains", "OR"),)), (1,), "1 of 3 rows, where “Van” contains “OR”."),
        (
            TableQuery(1, where=(where("Van", "not contains", "o"), where("Seats", "<=", 3))),
            (0,),
            "1 of 3 rows, where “Van” does not contain “o” and “Seats” <= 3.",
        ),
        (
            TableQuery(1, where=(where("Seats", ">", 5), where("Van", "=", "Ceto")), any_of=True),
            (1, 2),
            "2 of 3 rows, where “Seats” > 5 or “Van” is “Ceto”.",
        ),
        (
            TableQuery(1, where=(where("Price (EUR)", "=", "28000"),)),
            (1,),
            "1 of 3 rows, where “Price (EUR)” is 28000.",
        ),
        (TableQuery(1, where=(where("Bought", "<", "2021-01"),)), (1,), "1 of 3 rows, where “Bought” < 2021-01."),
        (
            TableQuery(1, "sum", "Price (EUR)"),
            (0, 1, 2),
            "Sum of Price (EUR): 31,200.50 + 28,000.00 = 59,200.50.\n3 rows.\nOf these, 2 have a figure.",
        ),
        (TableQuery(1, "average", "Seats"), (0, 1, 2), "Average of Seats: 3.33.\n3 rows."),
        (TableQuery(1, "smallest", "Seats"), (2,), "Smallest Seats: 0.\n3 rows."),
        (TableQuery(1, "largest", "Bought"), (2,), "Largest Bought: 2023-05-05.\n3 rows."),
        (TableQuery(1, where=(where("Bought", ">", "2021"),)), (2,), "1 of 3 rows, where “Bought” > 2021."),
        (TableQuery(1, where=(where("Bought", "=", "2021-03"),)), (0,), "1 of 3 rows, where “Bought” is 2021-03."),
        (
            TableQuery(1, where=(Condition("Van", "!=", ("Alba", "Ceto")),)),
            (1,),
            "1 of 3 rows, where “Van” is not “Alba” or “Ceto”.",
        ),
        (TableQuery(1, "values", "Home"), (0, 1, 2), "Home, 2: Dundee; Leith.\n3 rows."),
        (TableQuery(1, "count", group_by="Home"), (0, 1, 2), "Rows per Home: Leith 2; Dundee 1.\n3 rows."),
        (
            TableQuery(1, "sum", "Seats", group_by="Home"),
            (0, 1, 2),
            "Sum of Seats per Home: Dundee 7; Leith 3.\n3 rows.",
        ),
        (
            TableQuery(1, "average", "Seats", group_by="Home"),
            (0, 1, 2),
            "Average of Seats per Home: Dundee 7.00; Leith 1.50.\n3 rows.",
        ),
        (TableQuery(1, "largest", group_by="Home"), (0, 2), "Most rows per Home: Leith, 2.\n3 rows."),
        (
            TableQuery(1, "smallest", "Seats", group_by="Home"),
            (0, 2),
            "Smallest sum of Seats per Home: Leith, 3.\n3 rows.",
        ),
    ],
)
def test_rows_are_filtered_and_computed(query: TableQuery, rows: tuple[int, ...], note: str) -> None:
    assert run(query, FLEET, *Tables(FLEET).all) == TableAnswer(rows, note)


@pytest.mark.parametrize(
    "query",
    [
        TableQuery(1, where=(where("Colour", "=", "red"),)),
        TableQuery(1, where=(where("Home", "=", "Perth"),)),
        TableQuery(1, "sum", "Colour"),
        TableQuery(1, "count", group_by="Colour"),
        TableQuery(1, "sum", "Van", group_by="Home"),
        TableQuery(1, "sum"),
        TableQuery(1, "average", "Home"),
        TableQuery(1, "largest", "Home"),
        TableQuery(1, where=(where("Home", ">", 3),)),
    ],
)
def test_what_the_table_does_not_hold_has_no_result(query: TableQuery) -> None:
    assert run(query, FLEET, *Tables(FLEET).all) is None


@pytest.mark.parametrize("cell", ["30-40", "1.2 million", "1200000*", "about 20", "$30"])
@pytest.mark.parametrize(
    "query",
    [
        TableQuery(1, "sum", "Size"),
        TableQuery(1, "average", "Size"),
        TableQuery(1, "largest", "Size"),
        TableQuery(1, "sum", "Size", group_by="Site"),
        TableQuery(1, where=(where("Size", ">", 10),)),
    ],
)
def test_beside_a_figure_that_cannot_be_read_nothing_is_computed(query: TableQuery, cell: str) -> None:
    text = f"| Boat | Site | Size |\n|---|---|---|\n| A | Leith | €20 |\n| B | Leith | {cell} |\n| C | Leith | €3 |"
    assert run(query, text, *Tables(text).all) is None
    readable = text.replace(cell, "€30")
    assert run(query, readable, *Tables(readable).all) is not None


def test_a_row_is_one_of_totals_if_it_has_no_name_of_its_own() -> None:
    fuel = (
        "| Fill | Supplier | Cost |\n|---|---|---|\n| F1 | Total | 3 |\n| F2 | Esso | 4 |\n|  |  |  |\n| | Total | 7 |"
    )
    assert run(TableQuery(1, "sum", "Cost"), fuel, *Tables(fuel).all) == TableAnswer(
        (0, 1), "Sum of Cost: 3 + 4 = 7.\n2 rows."
    )
    sales = "| Month | City | Cost |\n|---|---|---|\n| May | Ulm | 3 |\n| May | Bonn | 4 |\n| May | Total | 7 |"
    assert run(TableQuery(1), sales, *Tables(sales).all) == TableAnswer((0, 1), "2 rows.")


def test_times_with_seconds_are_compared_unless_others_may_be_minutes() -> None:
    race = "| Runner | Time |\n|---|---|\n| Ida | 1:20:05 |\n| Ben | 0:59:58 |\n| Cai | 10:02:00 |"
    assert run(TableQuery(1, "smallest", "Time"), race, *Tables(race).all) == TableAnswer(
        (1,), "Smallest Time: 0:59:58.\n3 rows."
    )
    under = run(TableQuery(1, where=(Condition("Time", "<", "1:20:30"),)), race, *Tables(race).all)
    assert under is not None
    assert under.rows == (0, 1)
    mixed = race.replace("0:59:58", "59:58")
    assert run(TableQuery(1, "smallest", "Time"), mixed, *Tables(mixed).all) is None


@pytest.mark.parametrize(
    ("rows", "is_computed"),
    [
        (["Jan | 3", "Feb | 4", "Mar | 5", "Q1 | 12", "Apr | 1"], False),
        (["Jan | 3", "Feb | 4", "Mar | 5", "Apr | 1", "2025 | 13"], False),
        (["Jan | 3 | €30", "Feb | 4 | €45", "North | 7 | €75", "Mar | 5 | €9"], False),
        (["A | 3", "B | 4", "C | 7", "D | 9"], True),
        (["A | 3 | 1", "B | 4 | 1", "C | 7 | 9"], True),
    ],
)
def test_nothing_is_computed_of_rows_that_may_add_up_others(rows: list[str], is_computed: bool) -> None:
    head = "| Month | Bikes | Price |\n|---|---|---|\n" if rows[0].count("|") > 1 else "| Month | Bikes |\n|---|---|\n"
    text = head + "\n".join(f"| {row} |" for row in rows)
    for query in (TableQuery(1, "sum", "Bikes"), TableQuery(1, "count"), TableQuery(1, "largest", "Bikes")):
        assert (run(query, text, *Tables(text).all) is not None) is is_computed
    others = TableQuery(1, "sum", "Bikes", (Condition("Bikes", "<", 6),))
    assert run(others, text, *Tables(text).all) is not None, "its conditions leave them out"


def test_one_value_in_two_spellings_is_one() -> None:
    keys = "| Key | Colour |\n|---|---|\n| A | red |\n| B | Red |\n| C | blue |"
    assert run(TableQuery(1, "count", group_by="Colour"), keys, *Tables(keys).all) == TableAnswer(
        (0, 1, 2), "Rows per Colour: red 2; blue 1.\n3 rows."
    )
    values = run(TableQuery(1, "values", "Colour"), keys, *Tables(keys).all)
    assert values is not None
    assert values.note.startswith("Colour, 2: ")


@pytest.mark.parametrize(
    ("written", "date"),
    [
        ("2025-05-03", "2025-05-03"),
        ("3 May 2025", "2025-05-03"),
        ("May 3, 2025", "2025-05-03"),
        ("March 2025", "2025-03"),
        ("3. Mai 2025", "2025-05-03"),
        ("03.05.2025", "2025-05-03"),
        ("3/5/2025", None),
        ("Maybe 2025", None),
    ],
)
def test_dates_are_read_as_they_are_written_if_that_is_clear(written: str, date: str | None) -> None:
    assert date_of(written) == date


def test_a_point_before_three_digits_of_money_separates_thousands() -> None:
    text = "| Name | Gehalt (EUR) | Gewicht |\n|---|---|---|\n| A | 52.000 | 1.500 |\n| B | 8.500 | 2.250 |"
    answer = run(TableQuery(1, "sum", "Gehalt (EUR)"), text, *Tables(text).all)
    assert answer == TableAnswer((0, 1), "Sum of Gehalt (EUR): 52,000 + 8,500 = 60,500.\n2 rows.")


def test_a_list_is_a_table_of_one_column() -> None:
    query = TableQuery(1, "count", where=(where("Actions", "contains", "Ann"),))
    assert run(query, LIST, *lists_of(LIST)) == TableAnswer((0, 2), "2 of 3 items, where “Actions” contains “Ann”.")


@pytest.mark.parametrize(
    ("operation", "note"),
    [
        ("sum", "Sum of n: 11,111,111,111,111,111,111,111,111,111 + 0.25 = 11,111,111,111,111,111,111,111,111,111.25."),
        ("average", "Average of n: 5,555,555,555,555,555,555,555,555,555.62."),
        ("largest", "Largest n: 11111111111111111111111111111."),
    ],
)
def test_long_figures_are_computed_exactly(operation: Operation, note: str) -> None:
    table = f"| n |\n|---|\n| {'1' * 29} |\n| 0.25 |"
    result = run(TableQuery(1, operation, "n"), table, *Tables(table).all)
    assert result is not None
    assert result.note.startswith(note)


@pytest.mark.parametrize("operation", ["sum", "average", "largest", "smallest"])
def test_figures_that_are_too_long_are_said_to_be(operation: Operation) -> None:
    table = f"| n |\n|---|\n| {'1' * 5000} |\n| 2 |"
    result = run(TableQuery(1, operation, "n"), table, *Tables(table).all)
    assert result == TableAnswer((0, 1), "The figures of n are too long to compute.\n2 rows.")


def test_a_query_has_at_most_eight_conditions() -> None:
    conditions = (where("Seats", ">", 1),) * 9
    assert run(TableQuery(1, where=conditions[:8]), FLEET, *Tables(FLEET).all) is not None
    with pytest.raises(QueryTooLarge):
        run(TableQuery(1, where=conditions), FLEET, *Tables(FLEET).all)


def test_a_query_that_takes_too_long_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rag_assistant.retrieval.table_query.MAX_SECONDS", 0)
    with pytest.raises(QueryTooLarge):
        run(TableQuery(1, where=(where("Seats", ">", 1),)), FLEET, *Tables(FLEET).all)
