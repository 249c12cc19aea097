"""Quotes as an answer: each word for word with its number, and what is said where there is none."""

from typing import Any, get_args

import pytest
from msgspec import structs

from rag_assistant.answering.quoting import (
    HELLO,
    NEEDS_MODEL,
    NOTHING_SAID,
    NOTHING_TO_QUOTE,
    SAID_SO_FAR,
    WELCOME,
    WORD_JOINER,
    Request,
    asks_for,
    instead_of_quotes,
    quoted_answer,
)
from rag_assistant.answering.request import Draft, SearchResult
from rag_assistant.conversations.summary_lines import LEAD, NOTHING_FOUND, without_lead
from rag_assistant.conversations.window import Window
from rag_assistant.records import PastTurn, Source
from rag_assistant.retrieval.claims import CITATION
from rag_assistant.retrieval.quotes import Quote
from rag_assistant.retrieval.sentences import Sentence

ANYTHING: Any = None


def answer(*quotes: Quote, sources: int = 3) -> str:
    """Return what is answered behind the line that leads it."""
    whole = "".join(quoted_answer(quotes, sources))
    assert whole.startswith(f"{LEAD}\n\n")
    return without_lead(whole)


def source(n: int) -> Source:
    return Source(n, n, "a.md", None, 0, 1, "x", 1.0)


def draft(question: str = "How many geese?", found: SearchResult | None = None) -> Draft:
    return Draft(question, ANYTHING, ANYTHING, found or SearchResult())


def test_sentences_side_by_side_are_one_quote_and_each_quote_has_its_number() -> None:
    geese = Quote(2, (Sentence("Geese eat grass."), Sentence("They hiss.")))
    assert answer(geese, Quote(1, (Sentence("The lamp burns oil."),))) == (
        "> Geese eat grass. They hiss. [2]\n\n> The lamp burns oil. [1]"
    )


def test_a_title_is_a_line_of_its_own() -> None:
    rules = Quote(1, (Sentence("Harbour rules"), Sentence("The lamp burns oil."), Sentence("It is lit at dusk.")))
    assert answer(rules) == "> Harbour rules\n>\n> The lamp burns oil. It is lit at dusk. [1]"


def test_between_chinese_sentences_there_is_no_blank() -> None:
    assert answer(Quote(1, (Sentence("灯烧油。"), Sentence("船是绿色的。")))) == "> 灯烧油。船是绿色的。 [1]"


def test_rows_of_a_table_come_under_one_header() -> None:
    header = "| size | price |\n|---|---|"
    rows = tuple(Sentence(text, lead=header, kind="row") for text in ("| small | 3 |", "| large | 5 |"))
    assert answer(Quote(1, rows)) == f"> {header}\n| small | 3 |\n| large | 5 |\n\n[1]".replace("\n", "\n> ").replace(
        "> \n", ">\n"
    )


def test_a_list_comes_with_the_line_that_begins_it() -> None:
    items = Sentence("- PDF\n- Word", lead="You can add:", kind="list")
    assert answer(Quote(1, (Sentence("Nothing else."), items))) == (
        "> Nothing else.\n>\n> You can add:\n>\n> - PDF\n> - Word\n>\n> [1]"
    )


def test_a_number_in_the_documents_cites_nothing_here() -> None:
    text = answer(Quote(1, (Sentence("As shown in [2] and [57]."),)))
    assert text == f"> As shown in [{WORD_JOINER}2] and [57]. [1]"
    assert CITATION.findall(text) == ["57", "1"]


@pytest.mark.parametrize(
    "question",
    [
        "Summarise the contract.", "Please summarize this", "can you compare both offers?", "Translate it into German",
        "tl;dr", "Write me a letter", "Fasse das Dokument zusammen", "Übersetze das", "总结这份文件",
        "Summarise what we discussed with the supplier.",
    ],
)  # fmt: skip
def test_what_only_a_model_can_do_is_said(question: str) -> None:
    assert instead_of_quotes(draft(question)) == NEEDS_MODEL


@pytest.mark.parametrize(
    "question",
    [
        "How do I compare two versions?", "What does the summary say?", "Who translated the book?", "Hello World?",
        "Write access: who has it?", "Okay is which colour?", "How are you supposed to install it?", "",
        "Which documents do I need for a visa?",
    ],
)  # fmt: skip
def test_a_question_about_such_things_is_a_question(question: str) -> None:
    assert not [kind for kind in get_args(Request) if asks_for(kind, question)]


@pytest.mark.parametrize(
    "question",
    [
        "Summarise what we discussed.", "recap our conversation so far", "What have we talked about?",
        "Please summarize this chat", "What did we discuss so far?", "Fasse unser Gespräch zusammen",
    ],
)  # fmt: skip
def test_what_a_conversation_was_about_is_told_by_its_own_sentences(question: str) -> None:
    turns = tuple(
        PastTurn(n, ({"role": "user", "content": asked}, {"role": "assistant", "content": f"{LEAD}\n\n> {said} [1]"}))
        for n, asked, said in ((1, "How many geese?", "Seventeen geese."), (2, "Is the boat green?", "Blue since May."))
    )
    window = Window(ANYTHING, ANYTHING, (), ANYTHING, turns)
    assert instead_of_quotes(Draft(question, window, ANYTHING)) == (
        f"{SAID_SO_FAR}\n\n- Turn 1, User: How many geese?\n- Turn 1, Assistant: Seventeen geese."
        "\n- Turn 2, User: Is the boat green?\n- Turn 2, Assistant: Blue since May."
    )
    assert instead_of_quotes(Draft(question, structs.replace(window, turns=()), ANYTHING)) == NOTHING_SAID


@pytest.mark.parametrize("question", ["Hello!", "hi there", "How are you?", "Who are you?", "Guten Morgen", "你好"])
def test_a_greeting_gets_a_friendly_sentence(question: str) -> None:
    assert instead_of_quotes(draft(question)) == HELLO


@pytest.mark.parametrize("question", ["Thank you very much.", "Great, thanks!", "ok", "谢谢"])
def test_thanks_get_a_friendly_sentence(question: str) -> None:
    assert instead_of_quotes(draft(question)) == WELCOME


def test_where_nothing_is_near_enough_the_nearest_sections_are_named() -> None:
    in_vain = SearchResult(search={"found": 0}, nearest=("a.md > Geese", "b.md"))
    said = instead_of_quotes(draft(found=in_vain))
    assert said == f"{NOTHING_FOUND} These sections come nearest:\n\n- a.md > Geese\n- b.md"
    assert instead_of_quotes(draft(found=SearchResult(search={"found": 0}))) == NOTHING_FOUND
    foreign = instead_of_quotes(draft(found=SearchResult(search={"found": 0}, language="german")))
    assert foreign is not None
    assert foreign.startswith(f"{NOTHING_FOUND} Your question seems to be in German, and no")


def test_where_no_passage_is_in_the_request_there_is_nothing_to_quote() -> None:
    assert instead_of_quotes(draft()) == NOTHING_TO_QUOTE
    assert instead_of_quotes(draft(found=SearchResult((source(1),), {"found": 1}))) is None
    assert "".join(quoted_answer([], 1)) == NOTHING_TO_QUOTE
