"""What loops over text from elsewhere takes time in proportion to its length, as the patterns that it uses do."""

import json
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from functools import partial
from itertools import count

import pytest
from msgspec.structs import replace

from rag_assistant.answering.writer import with_citation_checks
from rag_assistant.conversations import bill, prompts, summary_lines
from rag_assistant.history import HistoryPolicy, analyse_history, fit_history, repair_messages
from rag_assistant.llm import failures, tool_calls
from rag_assistant.llm.prompt_counts import size_of
from rag_assistant.llm.reader import AnswerReader
from rag_assistant.records import Message, ModelRequest, Passage, PastTurn, Source, Turn
from rag_assistant.records.errors import QuestionDoesNotFit
from rag_assistant.retrieval import (
    chunking,
    claims,
    disagreements,
    follow_up,
    leads,
    quotes,
    sentences,
    support,
    table_answers,
    table_query,
    table_words,
    tables,
    terms,
    tokenize,
)
from rag_assistant.web.i18n.catalogs import translate
from rag_assistant.web.markdown import blocks, render
from rag_assistant.web.pages.frame import snippet_of
from tests.test_linear_text import is_linear

QUESTION = "Which herons opened at nine, and how many?"
# What is repeated, and what stands before it. The worst for the loops that were found so far are first.
PIECES = (
    *("It opens at nine. ", "no ", "not 9 ", "[1] ", "a [1]. ", "Ann is not here [1][2]. ", ". ", "No. ", "1"),
    *("1 ", "a", " ", "\n", "a ", "A. ", "A b ", "- a\n", "1. a\n", "# a\n", "> ", "| 1 | 2 |\n", "|", "|-|\n"),
    *("a: 1\n", "```\n", "*a", "_", "[a](", "![", "<a>", "&amp;", "$", "\\(", "世", "。", "What is it? ", '{"a": ['),
    "Z" * 40 + " ",
)  # fmt: skip
BEGINS = ("", "# H\n\n| a | b |\n|---|---|\n")
NUMBERS = count(1)
TURN = Turn(1, 1, 1, "completed", QUESTION, "", datetime.now(UTC))


def source(text: str, n: int = 1) -> Source:
    return Source(n, 1, "a.md", None, 0, len(text), text, 1.0)


def check(text: str) -> object:
    passages = source("Herons never sat beside grey lakes at nine."), source(text[:4000], 2)
    # Only a sentence with a citation is compared whole.
    answer = f"{text} herons sat beside grey lakes at nine [1]."
    return with_citation_checks(replace(TURN, answer=answer, sources=passages), answer)


def words(text: str) -> None:
    for terms_of in (tokenize.content_stems, terms.turn_terms, lambda one: terms.query_terms(one, ["english"])):
        terms_of(f"{text}{next(NUMBERS)}")  # The words of a text read before are remembered.


def compute(text: str) -> None:
    for table in [*tables.Tables(text).all[:2], *list(tables.lists_of(text))[:2]]:
        table_answers.query_for(QUESTION, text, table, "a.md")
        (name, *_), _ = table_query.parsed(text, table)
        table_query.run(table_query.TableQuery(1, "sum", name, (table_query.Condition(name, ">", 1),)), text, table)


def read(text: str) -> None:
    reader = AnswerReader()
    for start in range(0, len(text), 4):
        reader.text_of({"choices": [{"delta": {"content": text[start : start + 4]}}]})
    AnswerReader().whole_answer(json.dumps({"choices": [{"message": {"content": text}}]}))
    reader.rest()


def refuse(text: str) -> None:
    failures.context_too_long({"error": {"message": f"maximum context length is {text}"}})
    failures.refuses_tools(failures.reason_in(f"<title>{text}"))


def write(text: str) -> None:
    shown = blocks.Blocks()
    for end in range(0, len(text), 400):
        blocks.completed(text[end : end + 400])
    del shown
    render.render_markdown(text, [1], "copy")
    render.plain_text(text)


LOOPS: dict[str, Callable[[str], object]] = {
    "check": check,
    # To copy what is before each citation only shows in a long answer.
    "citations": lambda text: claims.unknown_citations(text * (100 if "[1] " in text[:8] else 1), [1]),
    "repeated": lambda text: claims.repeated_range(text, text),
    "sentences": lambda text: (sentences.sentences_of(text), sentences.split_text(text)),
    "tables": compute,
    "spelled out": tables.spelled_out,
    "figure": table_query.figure,
    "quotes": lambda text: quotes.choose_quotes(follow_up.SearchQuery(QUESTION), [source(text)], None, {1: text}),
    "support": lambda text: support.support_of(
        follow_up.SearchQuery(QUESTION),
        [Passage(1, 1, "a.md", 0, len(text), text, None, 1.0)],
        *(0.5, 100, lambda _, texts: [0.5] * len(texts)),
    ),
    "disagreements": lambda text: disagreements.disagreements(
        f"{QUESTION} {text[:200]}",
        tuple(replace(source(f"{text[:1500]} {n} herons {text}", n), document_id=n) for n in (1, 2)),
    ),
    "words": words,
    "headings": lambda text: (chunking.section_starts(text), leads.Leads(text).at(len(text) // 2, 500)),
    "question": lambda text: (
        follow_up.search_query(text, [(text, text)]),
        follow_up.parts_of(follow_up.SearchQuery(text)),
        follow_up.beside_which(text),
        table_words.asks_for_everything(text),
    ),
    "bill": lambda text: bill.bill_of([PastTurn(1, ({"role": "user", "content": text},))], "", 1000),
    "facts": lambda text: (list(bill.facts_in(text)), bill.is_instruction(text)),
    "record": lambda text: summary_lines.extract([PastTurn(1, ({"role": "user", "content": text},))], 1000),
    "summary": lambda text: summary_lines.with_turns(text, [summary_lines.SummaryLine((1,), text[:500])]),
    "excerpt": lambda text: (prompts.excerpt(text, ["nine"], 500), snippet_of(text, ["nine"]), prompts.title_for(text)),
    "markdown": write,
    "events": read,
    "refusals": refuse,
    "calls": lambda text: tool_calls.may_be_calls(text) and tool_calls.calls_in_text(text),
    "translations": lambda text: translate("de", f"The question has {text}"),
}


def repeated(begin: str, piece: str, loop: Callable[[str], object], chars: int) -> object:
    return loop(begin + piece * (chars // len(piece)) + "x")


@pytest.mark.parametrize("pieces", [PIECES[:5], pytest.param(PIECES[5:], marks=pytest.mark.long)], ids=["", "more"])
@pytest.mark.parametrize("loop", LOOPS)
def test_every_loop_over_text_is_linear(loop: str, pieces: tuple[str, ...]) -> None:
    LOOPS[loop]("Geese")  # Some load what they need at first.
    worst = [(begin, piece) for begin in BEGINS for piece in pieces]
    assert [one for one in worst if not is_linear(partial(repeated, *one, LOOPS[loop]))] == []


def one_turn_with(count: int, *ids: str) -> list[Message]:
    """Return a turn with so many calls and results, whose ids are these, or all different."""
    names = [ids[nth % len(ids)] if ids else str(nth) for nth in range(count)]
    calls = [{"id": name, "type": "function", "function": {"name": "f", "arguments": "{}"}} for name in names]
    results = [{"role": "tool", "tool_call_id": name, "content": "r"} for name in reversed(names)]
    asked: Message = {"role": "user", "content": "q"}
    return [asked, {"role": "assistant", "content": None, "tool_calls": calls}, *results, asked]


MESSAGES: dict[str, Callable[[int], list[Message]]] = {
    "the same turn": lambda count: [{"role": role, "content": "a"} for role in ("user", "assistant")] * count,
    "questions alone": lambda count: [{"role": "user", "content": str(nth)} for nth in range(count)],
    "calls": one_turn_with,
    "calls of one id": lambda count: one_turn_with(count, ""),
    "calls without results": lambda count: one_turn_with(count)[:2],
}
POLICIES = (HistoryPolicy(max_history_turns=None), HistoryPolicy(strategy="smart", token_budget=500))


def use(many: Callable[[int], list[Message]], chars: int) -> None:
    messages = many(chars // 2)
    repair_messages(messages)
    analyse_history(messages)
    size_of(ModelRequest(tuple(messages)))
    for policy in POLICIES:
        with suppress(QuestionDoesNotFit):
            fit_history([*messages, {"role": "user", "content": "Why?"}], policy)


@pytest.mark.parametrize("many", MESSAGES)
def test_a_request_takes_time_in_proportion_to_its_messages(many: str) -> None:
    assert is_linear(partial(use, MESSAGES[many]))
