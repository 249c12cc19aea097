"""Querying a table: exact results over all rows, and nothing where a query cannot be run."""

import pytest

from rag_assistant.retrieval.table_query import Condition, Operation, QueryTooLarge, TableAnswer, TableQuery, run
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
        (TableQuery(1, where=(where("home", "=", "leith"),)), (0, 2), "2 of 3 rows, where Home = leith."),
        (TableQuery(1, where=(where("Home", "!=", "Leith"),)), (1,), "1 of 3 rows, where Home != Leith."),
        (TableQuery(1, where=(where("Van", "contains", "OR"),)), (1,), "1 of 3 rows, where Van contains OR."),
        (
            TableQuery(1, where=(where("Van", "not contains", "o"), where("Seats", "<=", 3))),
            (0,),
            "1 of 3 rows, where Van not contains o and Seats <= 3.",
        ),
        (
            TableQuery(1, where=(where("Seats", ">", 5), where("Van", "=", "Ceto")), any_of=True),
            (1, 2),
            "2 of 3 rows, where Seats > 5 or Van = Ceto.",
        ),
        (TableQuery(1, where=(where("Price (EUR)", "=", "28000"),)), (1,), "1 of 3 rows, where Price (EUR) = 28000."),
        (TableQuery(1, where=(where("Bought", "<", "2021-01"),)), (1,), "1 of 3 rows, where Bought < 2021-01."),
        (
            TableQuery(1, "sum", "Price (EUR)"),
            (0, 1, 2),
            "Sum of Price (EUR): 31,200.50 + 28,000.00 = 59,200.50. 3 rows.",
        ),
        (TableQuery(1, "average", "Seats"), (0, 1, 2), "Average of Seats: 3.33. 3 rows."),
        (TableQuery(1, "smallest", "Seats"), (2,), "Smallest Seats: 0. 3 rows."),
        (TableQuery(1, "largest", "Bought"), (2,), "Largest Bought: 2023-05-05. 3 rows."),
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
        TableQuery(1, "sum"),
        TableQuery(1, "average", "Home"),
        TableQuery(1, "largest", "Home"),
        TableQuery(1, where=(where("Home", ">", 3),)),
    ],
)
def test_what_the_table_does_not_hold_has_no_result(query: TableQuery) -> None:
    assert run(query, FLEET, *Tables(FLEET).all) is None


def test_a_list_is_a_table_of_one_column() -> None:
    query = TableQuery(1, "count", where=(where("Actions", "contains", "Ann"),))
    assert run(query, LIST, *lists_of(LIST)) == TableAnswer((0, 2), "2 of 3 items, where Actions contains Ann.")


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
    assert result == TableAnswer((0, 1), "The figures of n are too long to compute. 2 rows.")


def test_a_query_has_at_most_eight_conditions() -> None:
    conditions = (where("Seats", ">", 1),) * 9
    assert run(TableQuery(1, where=conditions[:8]), FLEET, *Tables(FLEET).all) is not None
    with pytest.raises(QueryTooLarge):
        run(TableQuery(1, where=conditions), FLEET, *Tables(FLEET).all)


def test_a_query_that_takes_too_long_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rag_assistant.retrieval.table_query.MAX_SECONDS", 0)
    with pytest.raises(QueryTooLarge):
        run(TableQuery(1, where=(where("Seats", ">", 1),)), FLEET, *Tables(FLEET).all)
