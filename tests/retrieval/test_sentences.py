"""What of a passage can be quoted: sentences, list items, table rows and code."""

import pytest

from rag_assistant.retrieval.sentences import Sentence, sentences_of, split_text


def texts(text: str) -> list[str]:
    return [sentence.text for sentence in sentences_of(text)]


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


@pytest.mark.parametrize(
    "sentence",
    [
        "Dr. Smith met J. F. Kennedy at 3 p.m. in No. 5.",
        "Many animals, e.g. Geese and others, eat grass, cf. Fig. 3 for more.",
        "Das war am 3. Mai im 19. Jahrhundert, z. B. Geld bzw. Gold.",
        "The U.S. Army came vs. All others.",
        "It costs approx. 3.50 and not 4.",
        "It goes on ... and on.",
    ],
)
def test_an_abbreviation_an_initial_or_a_number_ends_no_sentence(sentence: str) -> None:
    assert split_text(f"{sentence} Next.") == [sentence, "Next."]


def test_lines_that_were_wrapped_are_one_sentence_and_short_ones_are_not() -> None:
    wrapped = "The keeper of the lighthouse feeds the\nseventeen geese of the island. The lamp\nburns oil.\nThe end"
    assert texts(wrapped) == [
        "The keeper of the lighthouse feeds the seventeen geese of the island.",
        "The lamp burns oil.",
        "The end",
    ]
    assert texts("灯塔看守人每天早上都会给岛上的十七只\n鹅喂食。") == ["灯塔看守人每天早上都会给岛上的十七只鹅喂食。"]


def test_a_short_list_is_one_quote_with_the_line_that_begins_it() -> None:
    assert sentences_of("# Add\n\nYou can add:\n\n- PDF\n- Word\n  files\n\nNothing else.") == [
        Sentence("- PDF\n- Word\n  files", "Add", "You can add:", block=True),
        Sentence("Nothing else.", "Add"),
    ]


def test_the_items_of_a_long_list_are_quoted_one_by_one() -> None:
    items = [f"{number}. Step {number} is {'long ' * 20}indeed." for number in (1, 2, 3)]
    found = sentences_of("Do this:\n" + "\n".join(items))
    assert [(one.text, one.lead) for one in found] == [(item, "Do this:") for item in items]


def test_an_item_that_is_a_whole_text_is_cut_into_sentences() -> None:
    assert texts("- " + "A goose eats. " * 30)[:2] == ["A goose eats.", "A goose eats."]


def test_a_row_comes_with_its_header() -> None:
    found = sentences_of("Prices:\n\n| size | price |\n|---|---|\n| small | 3 |\n| large | 5 |")
    header = "Prices:\n\n| size | price |\n|---|---|"
    assert found == [
        Sentence("| small | 3 |", lead=header, block=True),
        Sentence("| large | 5 |", lead=header, block=True),
    ]


def test_a_row_whose_header_is_not_in_the_passage_stands_alone() -> None:
    assert sentences_of("| small | 3 |") == [Sentence("| small | 3 |", block=True)]


def test_code_is_quoted_whole_and_nothing_in_it_is_a_heading() -> None:
    code = "```\n# a comment. Indeed.\n\nx = 1\n```"
    assert texts(f"Run:\n\n{code}\n\nDone.") == [code, "Done."]


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
