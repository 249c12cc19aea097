"""A chunk from the middle of a table, a list or code begins with what says what that is about."""

import pytest

from rag_assistant.records import lead_of
from rag_assistant.records.documents import ExtractedText
from rag_assistant.retrieval.chunking import chunk_document
from rag_assistant.retrieval.leads import Leads
from rag_assistant.storage.database import Database
from tests.testkit.shelf import Shelf

HEAD = "| bird | number |\n| --- | --- |\n"
ROWS = "".join(f"| goose {number} | {number} |\n" for number in range(40))
TABLE = f"# Birds\n\nTable 3: Birds on the island\n\n{HEAD}{ROWS}\nThe end.\n"
LIST = (
    "Before you sail, check these:\n\n- the lamp\n- the ropes:\n  - the long one\n  - the short one\n- the oil\n\nGo.\n"
)
CODE = "Feed the geese so:\n\n```python\nfor goose in geese:\n    feed(goose)\n- count()\n```\n\n- an item\n"


def test_a_row_has_the_caption_and_the_head_of_its_table_above_it() -> None:
    assert Leads(TABLE).at(TABLE.index("| goose 9 "), 200) == f"Table 3: Birds on the island\n\n{HEAD}"


def test_a_table_that_begins_a_chunk_has_its_caption_above_it() -> None:
    assert Leads(TABLE).at(TABLE.index("| bird"), 200) == "Table 3: Birds on the island\n\n"


def test_where_there_is_little_room_what_is_nearest_stays() -> None:
    assert Leads(TABLE).at(TABLE.index("| goose 9 "), len(HEAD)) == HEAD
    assert Leads(LIST).at(LIST.index("  - the short one"), 20) == "- the ropes:\n"


@pytest.mark.parametrize(("columns", "max_chars"), [(8, 450), (8, 200), (90, 450), (900, 100)])
def test_a_long_head_is_shortened_and_never_left_out(columns: int, max_chars: int) -> None:
    names = [f"{n} is the number of this long column" for n in range(columns)]
    head = f"| {' | '.join(names)} |\n|{' --- |' * columns}\n"
    text = head + "".join(f"| row {n} |{' 1 |' * (columns - 1)}\n" for n in range(5))
    lead = Leads(text).at(text.index("| row 3"), max_chars)
    first, rule, rest = lead.split("\n")
    assert first.startswith("| 0"), lead
    assert first.count("|") == rule.count("|") > min(columns, max_chars // 10)
    assert rest == ""
    assert len(lead) <= max_chars


def test_a_piece_of_a_long_row_has_its_label_and_the_columns_that_follow_above_it() -> None:
    text = "| bird | Monday | Tuesday | Wednesday |\n| --- | --- | --- | --- |\n| goose | one | two three | four |\n"
    assert Leads(text).at(text.index("two"), 100) == "goose: Tuesday | Wednesday\n"
    assert Leads(text).at(text.index("three"), 100) == "goose: Tuesday | Wednesday\n"
    assert len(Leads(text).at(text.index("two"), 24)) <= 24


@pytest.mark.parametrize("words", ["bird |", "The end.", "# Birds", "Table 3"])
def test_only_in_the_rows_of_a_table_there_is_something_above_it(words: str) -> None:
    assert Leads(TABLE).at(TABLE.index(words), 200) == ""


@pytest.mark.parametrize(
    "above", ["# Prices", "x" * 201, "| another | table", "- an item", "far away\n\n", "", "```\ncode\n```"]
)
def test_what_is_no_short_line_right_above_a_table_is_no_caption(above: str) -> None:
    text = f"{above}\n\n{HEAD}{ROWS}"
    assert Leads(text).at(text.index("| goose 9 "), 500) == HEAD


def test_an_item_has_the_line_that_begins_its_list_above_it() -> None:
    assert Leads(LIST).at(LIST.index("- the oil"), 200) == "Before you sail, check these:\n\n"
    assert Leads(LIST).at(LIST.index("- the lamp"), 200) == "Before you sail, check these:\n\n"


@pytest.mark.parametrize("indentation", [0, 2])
def test_an_item_of_an_item_has_both_above_it(indentation: int) -> None:
    lead = Leads(LIST).at(LIST.index("  - the short one") + indentation, 200)
    assert lead == "Before you sail, check these:\n\n- the ropes:\n"


def test_a_list_below_a_heading_has_nothing_above_it() -> None:
    text = "# Oil\n\n- one\n- two\n"
    assert Leads(text).at(text.index("- two"), 200) == ""


def test_code_has_the_line_above_it_and_its_fence() -> None:
    for words in ("    feed", "- count()"):
        assert Leads(CODE).at(CODE.index(words), 200) == "Feed the geese so:\n\n```python\n"
    assert Leads(CODE).at(CODE.index("```python"), 200) == "Feed the geese so:\n\n"
    assert Leads(CODE).at(CODE.index("- an item"), 200) == ""


def test_code_that_never_ends_goes_to_the_end() -> None:
    assert Leads("~~~\na\nb").at(6, 200) == "~~~\n"


@pytest.mark.parametrize("text", [TABLE, LIST * 9, CODE * 9])
def test_what_stands_in_front_is_told_from_the_chunks_own_place(text: str) -> None:
    for chunk in chunk_document(ExtractedText(text, "text/markdown", markdown=True), 120):
        lead = lead_of(chunk.text, chunk.start, chunk.end)
        assert chunk.text == lead + text[chunk.start : chunk.end]


def test_a_row_is_found_by_its_caption_and_a_step_by_what_it_is_a_step_of(database: Database) -> None:
    shelf = Shelf(database)
    other = TABLE.replace("Birds on the island", "Birds of the harbour").replace("# Birds", "# Others")
    steps = "To clean the lamp:\n\n" + "".join(f"{n}. Turn screw {n} by half and wait for it.\n" for n in range(1, 30))
    texts = [
        chunk.text
        for text in (TABLE, other, steps, steps.replace("clean the lamp", "paint the boat"))
        for chunk in chunk_document(ExtractedText(text, "text/markdown", markdown=True), 300)
    ]
    for text in texts:
        shelf.shelve(text)
    assert "Birds of the harbour" in shelf.found("goose 31 of the harbour", 1)[0]
    assert "| goose 31 |" in shelf.found("goose 31 of the harbour", 1)[0]
    step = next(text for text in shelf.found("clean the lamp screw 28", 5) if "28. Turn" in text)
    assert step.startswith("To clean the lamp:")
