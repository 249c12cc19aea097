"""Tables of Markdown texts: a row that stands alone still says what its cells are."""

import pytest

from rag_assistant.records import Passage, lead_of
from rag_assistant.records.documents import ExtractedText
from rag_assistant.retrieval.chunking import chunk_document, indexed_text
from rag_assistant.retrieval.postprocess import joined
from rag_assistant.retrieval.sentences import sentences_of
from rag_assistant.retrieval.tables import Tables, spelled_out, without_rules

HEAD = "| bird | number |\n| --- | --- |\n"
LONG = f"# Birds\n\n{HEAD}" + "".join(f"| goose {number} | {number} |\n" for number in range(100)) + "\nThe end."


def test_a_chunk_from_the_middle_of_a_table_begins_with_its_head() -> None:
    chunks = chunk_document(ExtractedText(LONG, "text/csv", markdown=True), 300)
    assert len(chunks) > 5
    within = [chunk for chunk in chunks if chunk.start > LONG.index("goose 0")]
    assert all(chunk.text.startswith(f"{HEAD}| goose ") for chunk in within)
    assert all(chunk.text == HEAD + LONG[chunk.start : chunk.end] for chunk in within)
    assert [lead_of(chunk.text, chunk.start, chunk.end) for chunk in chunks[-2:]] == [HEAD, HEAD]
    assert LONG[chunks[0].start : chunks[0].end] == chunks[0].text


def test_passages_of_a_table_that_touch_have_its_head_once() -> None:
    first, second = chunk_document(ExtractedText(LONG, "text/csv", markdown=True), 300)[2:4]
    gap = LONG[first.end : second.start]
    passages = [Passage(c.position, 1, "a.csv", c.start, c.end, c.text, None, 1.0, gap=gap) for c in (first, second)]
    (both,) = joined(passages)
    assert both.text == HEAD + LONG[first.start : second.end]
    assert (both.start, both.end) == (first.start, second.end)


def test_a_row_is_a_sentence_that_names_its_cells() -> None:
    text = "Before.\n\n| bird |  | a\\|b |\n|:--|--|-:|\n| goose | 17 | c |\n| duck |\n\nBehind."
    assert spelled_out(text) == "Before.\n\nbird: goose, 17, a|b: c.\nbird: duck.\n\nBehind."
    assert spelled_out("a | b\n\n---\n\n- c") == "a | b\n\n---\n\n- c"


def test_a_row_of_a_passage_from_the_middle_of_a_table_is_quoted_below_its_head() -> None:
    chunk = chunk_document(ExtractedText(LONG, "text/csv", markdown=True), 300)[3]
    rows = sentences_of(chunk.text)
    assert {row.lead for row in rows} == {HEAD.rstrip("\n")}
    assert len(rows) == chunk.text.count("\n") - 1


def test_what_is_indexed_of_a_table_has_no_line_of_dashes() -> None:
    assert "---" not in indexed_text("birds.csv", None, HEAD + "| goose | 17 |")
    assert without_rules("A line.\n---\n- item") == "A line.\n---\n- item"


@pytest.mark.parametrize("piece", ["|-", "| ", "| --- ", "\n|-|", "a|\n"])
def test_a_text_of_nothing_but_borders_costs_its_length(piece: str) -> None:
    assert len(spelled_out(piece * 100_000)) <= 10 * 100_000


REPORT = """| Analyses by segment |  |  |  |
| --- | --- | --- | --- |
| In millions |  |  |  |
|  | Sales | Profit | Costs |
| North | 12 | 3 | 9 |
"""


def test_the_names_of_the_columns_may_stand_below_rows_that_tell_what_the_table_is_about() -> None:
    (table,) = Tables(REPORT).all
    assert (table.title, table.head) == (
        "Analyses by segment In millions",
        "|  | Sales | Profit | Costs |\n| --- | --- | --- | --- |",
    )
    assert REPORT[table.rows : table.end] == "| North | 12 | 3 | 9 |"
    assert spelled_out(REPORT) == "Analyses by segment In millions\nNorth, Sales: 12, Profit: 3, Costs: 9.\n"


def test_a_table_of_few_cells_keeps_its_first_row_as_its_head() -> None:
    sparse = (
        "|  | Paint |  |  | 60 |\n| --- | --- | --- | --- | --- |\n|  | Body |  |  | 30 |\n| Tax |  | a | 10 | 7 |\n"
    )
    assert Tables(sparse).all[0].head.startswith("|  | Paint |")
