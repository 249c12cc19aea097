"""What of a passage can be quoted: sentences, list items, table rows and code."""

import pytest

from rag_assistant.retrieval.sentences import (
    MAX_CODE_CHARS,
    MIN_UNMARKED_CHARS,
    is_in_code,
    sentences_of,
    split_text,
)


def texts(text: str) -> list[str]:
    return [sentence.text for sentence in sentences_of(text)]


def cut(text: str) -> list[tuple[str, str, str]]:
    return [(one.kind, one.text, one.lead) for one in sentences_of(text)]


def units(text: str) -> list[list[str]]:
    """Return the texts of what is one."""
    numbers = dict.fromkeys(one.unit for one in sentences_of(text))
    return [[one.text for one in sentences_of(text) if one.unit == number] for number in numbers]


def test_a_text_is_cut_at_the_ends_of_its_sentences_and_headings_are_none() -> None:
    assert texts('# Title\n\nOne is 1.5. Two! "Three?" Four (or so.) Five.') == [
        "One is 1.5.",
        "Two!",
        '"Three?"',
        "Four (or so.)",
        "Five.",
    ]


def test_chinese_and_japanese_sentences_end_without_a_blank() -> None:
    assert split_text("四。「五！」六？七") == ["四。", "「五！」", "六？", "七"]  # noqa: RUF001 - the point of it
    assert split_text("「そうですか？」と彼は言った。雨だ。") == ["「そうですか？」と彼は言った。", "雨だ。"]  # noqa: RUF001


def test_khmer_and_burmese_sentences_end_with_marks_of_their_own() -> None:
    assert split_text("ភ្នំពេញជារាជធានី។ ទន្លេហូរ។") == ["ភ្នំពេញជារាជធានី។", "ទន្លេហូរ។"]
    assert split_text("မိုးရွာသည်။ နေပူသည်။") == ["မိုးရွာသည်။", "နေပူသည်။"]


def test_thai_is_cut_at_the_blanks_between_its_sentences() -> None:
    clause = "ผู้ดูแลประภาคารให้อาหารห่านทุกเช้า"
    pieces = split_text(" ".join([clause] * 20) + " 17 ตัว")
    assert len(pieces) == 4
    assert all(MIN_UNMARKED_CHARS - 1 <= len(one) <= MIN_UNMARKED_CHARS + len(clause) for one in pieces[:-1])
    assert pieces[-1].endswith(f"{clause} 17 ตัว"), "a number is not parted from what it counts"


@pytest.mark.parametrize(
    "sentence",
    [
        "Dr. Smith met J. F. Kennedy at 3 p.m. in No. 5.",
        "Many animals, e.g. Geese and others, eat grass, cf. Fig. 3 for more.",
        "Das war am 3. Mai im 19. Jahrhundert, z. B. Geld bzw. Gold.",
        "The U.S. Army came vs. All others.",
        "It costs approx. 3.50 and not 4.",
        "It goes on ... and on.",
        "Call Berg Ltd. or Muster GmbH & Co. KG at 0351 55512 ext. 14 or tel. 17.",
        "Mr. Das of Kahn Inc. Berlin met Dr. Le in room No. A12.",
    ],
)
def test_an_abbreviation_an_initial_or_a_number_ends_no_sentence(sentence: str) -> None:
    assert split_text(f"{sentence} Next.") == [sentence, "Next."]


@pytest.mark.parametrize(
    "first", ["He rents of Berg Ltd.", "Pets allowed: No.", "Er zahlte 5 Mio.", "Geese, ducks etc."]
)
@pytest.mark.parametrize("second", ["The rent is 5.", "Die Miete beträgt 5."])
def test_an_abbreviation_before_a_new_sentence_ends_one(first: str, second: str) -> None:
    assert split_text(f"{first} {second} Next.") == [first, second, "Next."]


def test_lines_that_were_wrapped_are_one_sentence_and_short_ones_are_not() -> None:
    wrapped = "The keeper of the lighthouse feeds the\nseventeen geese of the island. The lamp\nburns oil.\nThe end"
    assert texts(wrapped) == [
        "The keeper of the lighthouse feeds the seventeen geese of the island.",
        "The lamp burns oil.",
        "The end",
    ]
    assert texts("灯塔看守人每天早上都会给岛上的十七只\n鹅喂食。") == ["灯塔看守人每天早上都会给岛上的十七只鹅喂食。"]


def test_a_short_list_is_one_quote_with_the_line_that_begins_it() -> None:
    assert cut("# Add\n\nYou can add:\n\n- PDF\n- Word\n  files\n\nNothing else.") == [
        ("list", "- PDF\n- Word\n  files", "You can add:"),
        ("text", "Nothing else.", ""),
    ]


def test_the_items_of_a_long_list_are_quoted_one_by_one() -> None:
    items = [f"{number}. Step {number} is {'long ' * 20}indeed." for number in (1, 2, 3)]
    found = sentences_of("Do this:\n" + "\n".join(items))
    assert [(one.text, one.lead) for one in found] == [(item, "Do this:") for item in items]


def test_an_item_that_is_a_whole_text_is_cut_into_sentences() -> None:
    assert texts("- " + "A goose eats. " * 30)[:2] == ["A goose eats.", "A goose eats."]


def test_a_row_comes_with_its_header() -> None:
    found = cut("Prices:\n\n| size | price |\n|---|---|\n| small | 3 |\n| large | 5 |")
    header = "Prices:\n\n| size | price |\n|---|---|"
    assert found == [("row", "| small | 3 |", header), ("row", "| large | 5 |", header)]


def test_a_table_without_borders_outside_is_a_table() -> None:
    assert cut("size | price\n--- | ---\nsmall | 3\nlarge | 5\n\nThe end of it.") == [
        ("row", "small | 3", "size | price\n--- | ---"),
        ("row", "large | 5", "size | price\n--- | ---"),
        ("text", "The end of it.", ""),
    ]


def test_a_row_whose_header_is_not_in_the_passage_stands_alone() -> None:
    assert cut("| small | 3 |") == [("row", "| small | 3 |", "")]


def test_code_is_quoted_whole_and_nothing_in_it_is_a_heading() -> None:
    code = "```\n# a comment. Indeed.\n\nx = 1\n```"
    assert texts(f"Run:\n\n{code}\n\nDone.") == [code, "Done."]


def test_long_code_is_cut_between_lines_and_each_part_is_code() -> None:
    lines = [f"value_{n} = {n}" for n in range(400)]
    parts = texts("```python\n" + "\n".join(lines) + "\n```\n\nDone.")
    assert parts.pop() == "Done."
    assert len(parts) > 1
    assert max(map(len, parts)) <= MAX_CODE_CHARS + len("```python\n\n```")
    assert all(one.startswith("```python\n") and one.endswith("\n```") for one in parts)
    assert [line for one in parts for line in one.split("\n")[1:-1]] == lines


def test_text_that_begins_inside_code_is_not_turned_inside_out() -> None:
    whole = "```\nx = 1\ny = 2\n```\n\nThe geese hiss.\n\n```\nz = 3\n```\n"
    begin = whole.index("y = 2")
    assert is_in_code(whole, begin)
    rest = sentences_of(whole[begin:], begins_in_code=True)
    assert [(one.kind, one.text) for one in rest] == [
        ("code", "y = 2\n```"),
        ("text", "The geese hiss."),
        ("code", "```\nz = 3\n```"),
    ]


@pytest.mark.parametrize("text", ["", "\n\n", "# Only a heading", "|---|---|"])
def test_what_says_nothing_holds_nothing_to_quote(text: str) -> None:
    assert texts(text) == []


def test_code_that_a_chunk_cut_off_is_still_code() -> None:
    assert texts("```\nx = 1\n\ny = 2") == ["```\nx = 1\n\ny = 2"]


def test_a_row_is_quoted_below_its_caption_and_a_title_without_rows_is_a_sentence() -> None:
    table = "Table 3: Birds on the island\n\n| bird | number |\n|---|---|\n| goose | 17 |\n"
    (row,) = sentences_of(table)
    assert row.lead == "Table 3: Birds on the island\n\n| bird | number |\n|---|---|"
    assert [one.text for one in sentences_of("Birds\n\nGeese hiss.")] == ["Birds", "Geese hiss."]
    (_, row) = sentences_of("Geese hiss.\n\n| bird |\n|---|\n| goose |")
    assert row.lead == "| bird |\n|---|"


INVOICE = """Brightwell Office Supply Ltd.
14 Canal Street, Leeds

Invoice date: 4 March
Due date: 3 April
Pos Description Qty Price Amount
1 Desk lamp 6 34.50 207.00
2 Office chair 4 189.00 756.00
Subtotal 963.00 GBP
VAT 20 % 192.60 GBP
Total 1,155.60 GBP
Please pay within the time that is set above, and name the number of this invoice
when you do. We thank you."""


def test_the_lines_of_an_invoice_are_keys_with_values_and_rows_with_their_header() -> None:
    header = "Pos Description Qty Price Amount"
    assert cut(INVOICE) == [
        ("title", "Brightwell Office Supply Ltd.", ""),
        ("title", "14 Canal Street, Leeds", ""),
        ("pair", "Invoice date: 4 March", ""),
        ("pair", "Due date: 3 April", ""),
        ("figures", "1 Desk lamp 6 34.50 207.00", header),
        ("figures", "2 Office chair 4 189.00 756.00", header),
        ("figures", "Subtotal 963.00 GBP", header),
        ("figures", "VAT 20 % 192.60 GBP", header),
        ("figures", "Total 1,155.60 GBP", header),
        (
            "text",
            "Please pay within the time that is set above, and name the number of this invoice when you do.",
            "",
        ),
        ("text", "We thank you.", ""),
    ]


def test_keys_with_values_that_stand_together_are_one() -> None:
    assert ["Invoice date: 4 March", "Due date: 3 April"] in units(INVOICE)
    assert units("Policy no.      17\nPaid   yes\n\nIt is over.") == [
        ["Policy no.      17", "Paid   yes"],
        ["It is over."],
    ]


@pytest.mark.parametrize(
    "text",
    [
        "A line that was wrapped because it is as long as that\nNote: it goes on here with words\nand ends only there.",
        "The firm of the lighthouse keeper was founded in the year 1998\nand has had geese ever since.",
        "He came at 10:00 and said: there is nobody here.",
    ],
)
def test_what_looks_like_a_key_within_running_text_is_none(text: str) -> None:
    assert texts(text) == [" ".join(text.split())]


def test_a_short_section_is_one_below_its_heading() -> None:
    text = "## idle_timeout\n\nDefault: 90 s\n\nThen it is closed.\n\n## log\n\n" + "It is long. " * 40
    first, second, *rest = sentences_of(text)
    assert first.unit == second.unit != 0
    assert first.lead == second.lead == "**idle_timeout**"
    assert {(one.unit, one.lead) for one in rest} == {(0, "")}


def test_a_sentence_says_where_it_stands() -> None:
    text = "# Birds\n\nGeese\nhiss. Ducks\nquack.\n\n| bird |\n|---|\n| goose |\n\n- " + "An item. " * 50
    for one in sentences_of(text):
        assert " ".join(text[one.start : one.end].split()) == one.text


def test_a_footnote_is_no_part_of_the_list_above_it() -> None:
    assert cut("1. Call them.\n2. Wait.\n\n[^1]: Not since May.") == [
        ("list", "1. Call them.\n2. Wait.", ""),
        ("note", "[^1]: Not since May.", ""),
    ]


MANUAL = """idle_timeout
    Default: 90 s

    The connection is closed
    after it.

log_level
    Default: notice

What follows is no part of it."""


def test_a_term_is_one_with_what_is_indented_below_it() -> None:
    found = [(one.heading, one.text, one.lead) for one in sentences_of(MANUAL)]
    assert found == [
        ("idle_timeout", "Default: 90 s", "**idle_timeout**"),
        ("idle_timeout", "The connection is closed after it.", "**idle_timeout**"),
        ("log_level", "Default: notice", "**log_level**"),
        ("", "What follows is no part of it.", ""),
    ]


def test_a_key_is_what_stands_before_its_value() -> None:
    assert [one.key for one in sentences_of("Due date: 3 April\n\nIt is due.")] == ["Due date: ", ""]


def test_the_title_above_the_names_of_a_sheets_columns_is_not_its_header() -> None:
    text = "| Stock of May | | |\n|---|---|---|\n| Tool | Maker | Stock |\n| Drill | Makita | 4 |\n| Saw | Bosch | 2 |"
    header = "| Tool | Maker | Stock |\n|---|---|---|"
    assert [(one.lead, one.text) for one in sentences_of(text)] == [
        (header, "| Drill | Makita | 4 |"),
        (header, "| Saw | Bosch | 2 |"),
    ]
