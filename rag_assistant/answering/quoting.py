"""Answer without a model: with numbered verbatim sentences from the passages in a request. Pure."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Sequence
from itertools import groupby
from pkgutil import get_data
from typing import TYPE_CHECKING, Literal, get_args

from rag_assistant.answering.request import MIN_ALARM_CERTAINTY
from rag_assistant.conversations.summary_lines import LEAD, LEAD_NEAR, NOTHING_FOUND, NOTHING_IN_SCOPE, extract
from rag_assistant.retrieval.claims import CITATION, cited_numbers
from rag_assistant.retrieval.sentences import ends_as_sentence, split_text
from rag_assistant.retrieval.tokenize import content_words

if TYPE_CHECKING:
    from rag_assistant.answering.request import Draft
    from rag_assistant.records import Coverage, RelatedTurn
    from rag_assistant.retrieval.quotes import Quote
    from rag_assistant.retrieval.sentences import Sentence

NEEDS_MODEL = (
    "That needs a language model. Without one, I can only quote what your documents say: ask about something that is "
    "in them, or connect a model."
)
NEEDS_THE_MODEL = "That needs the language model: quotes only repeat what your documents say."
SAID_BEFORE = "In turn {} of this conversation, you said:"
UNCLEAR = "I can't tell what your question refers to."
WHICH = "Which of these do you mean?"
NAME_IT = "Please name it."
FOREIGN = (
    "Your question seems to be in {}, and no document seems to be. The embedding model builtin-multilingual searches "
    "across languages."
)
NEAREST = "These sections come nearest:"
PARTIAL = "This rests on {n} of {n1} passages of these documents."
NOTHING_TO_QUOTE = (
    "There is nothing to quote for this question. Add documents that answer it, or connect a language model."
)
NO_QUOTES = "There is nothing to quote for this question. Add documents that answer it."
_DATA = tomllib.loads((get_data(str(__package__), "quoting.toml") or b"").decode())
Request = Literal["task", "thanks", "greeting", "documents", "conversation"]
REQUESTS = {
    name: re.compile(rf"\W*(?:{'|'.join(_DATA['politely'])})*(?:{'|'.join(_DATA[name])})\W*", re.IGNORECASE)
    for name in get_args(Request)
}
WELCOME = "You're welcome! Ask me anything else that your documents answer."
HELLO = "Hello! I answer questions with what your documents say; ask me about something in them."
# Of how many related turns one may be quoted: what comes later in the order of the index matches by chance.
MAX_SAID_BEFORE = 5
MAX_CONVERSATION_TOKENS = 400
SAID_SO_FAR = "Without a language model, I can only repeat the sentences of this conversation that say most:"
NOTHING_SAID = "Nothing was said in this conversation before."
YOUR_DOCUMENTS = "You have {} documents:"
YOUR_DOCUMENT = "You have one document:"
DOCUMENTS_IN_SCOPE = "The documents that this question is limited to ({} in all):"
MORE_DOCUMENTS = "and {} more"
# Zero width, so that a number in brackets looks the same as in the document.
WORD_JOINER = "\u2060"
# After these there is no blank between two sentences.
FULL_WIDTH_ENDS = ("。", "！", "？", "”", "’", "」", "』", "）")  # noqa: RUF001


def asks_for(kind: Request, question: str) -> bool:
    """Return whether a question asks for something else than what documents say.

    A ``task`` is one for a model (summarise, translate, compare); ``documents`` asks which there are, ``conversation``
    what was said before. ``thanks`` and a ``greeting`` ask for nothing.
    """
    pattern = REQUESTS[kind]
    return bool(pattern.match(question) if kind == "task" else pattern.fullmatch(question))


def instead_of_quotes(draft: Draft, *, connected: bool = False) -> str | None:
    """Return the answer if nothing is quoted, ``None`` if there may be something; is a model ``connected``?"""
    if asks_for("conversation", draft.question):
        record = extract(draft.window.turns, MAX_CONVERSATION_TOKENS) if draft.window.turns else ""
        return f"{SAID_SO_FAR}\n{_listed(record.splitlines())}" if record else NOTHING_SAID
    if asks_for("task", draft.question):
        return NEEDS_THE_MODEL if connected else NEEDS_MODEL
    if asks_for("thanks", draft.question):
        return WELCOME
    if asks_for("greeting", draft.question):
        return HELLO
    searched, nearest = draft.found.searched_documents, draft.found.nearest
    if names := draft.found.documents:
        count = draft.found.document_count
        more = [MORE_DOCUMENTS.format(count - len(names))] if count > len(names) else []
        lead = DOCUMENTS_IN_SCOPE if searched is not None else YOUR_DOCUMENT if count == 1 else YOUR_DOCUMENTS
        return f"{lead.format(count)}\n{_listed([*names, *more])}"
    if draft.found.unclear:
        return f"{UNCLEAR} {WHICH}\n{_listed(nearest)}" if nearest else f"{UNCLEAR} {NAME_IT}"
    if draft.found.nothing:
        lead = NOTHING_FOUND if searched is None else NOTHING_IN_SCOPE.format(n=f"{searched:,}")
        if (reply := _said_before(draft.question, draft.related)) is not None:
            return f"{lead} {reply}"
        if draft.found.language:
            lead += f" {FOREIGN.format(draft.found.language.capitalize())}"
        return f"{lead} {NEAREST}\n{_listed(nearest)}" if nearest else lead
    return None if draft.found.sources else NO_QUOTES if connected else NOTHING_TO_QUOTE


def _listed(lines: Sequence[str]) -> str:
    return "".join(f"\n- {line}" for line in lines)


def _said_before(question: str, related: Sequence[RelatedTurn]) -> str | None:
    """Return an earlier statement of the person that matches a question; a question doesn't answer another."""
    words = set(content_words(question))
    for turn in related[:MAX_SAID_BEFORE]:
        sentences = [one for one in split_text(" ".join(turn.question.split())) if not one.endswith(("?", "？"))]  # noqa: RUF001
        best = max(sentences, key=lambda one: len(words & set(content_words(one))), default="")
        if turn.certainty >= MIN_ALARM_CERTAINTY and words & set(content_words(best)):
            return f"{SAID_BEFORE.format(turn.number)}\n\n> {best}"
    return None


def quoted_answer(
    quotes: Sequence[Quote], sources: int, *, lead: str = "", is_near: bool = False, coverage: Coverage | None = None
) -> Iterator[str]:
    """Yield an answer in Markdown, piece by piece.

    ``sources`` is their number: only our own citations count. Beside a connected model there is a ``lead``.
    ``is_near``: the quotes may not answer the question, unless it was computed. ``coverage`` is stated if it isn't
    complete.
    """
    if not quotes:
        yield NO_QUOTES if lead else NOTHING_TO_QUOTE
        return
    is_near = is_near and not quotes[0].computed
    yield LEAD_NEAR if is_near else lead or LEAD
    if coverage is not None and coverage.read < coverage.of:
        yield f"\n\n{PARTIAL.format(n=f'{coverage.read:,}', n1=f'{coverage.of:,}')}"
    for quote in quotes:
        gap = "\n\n" if quote.sentences[-1].block else " "
        text = "\n\n".join(_paragraphs(quote, sources)) + f"{gap}[{quote.n}]"
        yield f"\n\n{quote.note}" if quote.note else ""
        yield "\n\n" + "\n".join(f"> {line}".rstrip() for line in text.split("\n"))


def _paragraphs(quote: Quote, sources: int) -> Iterator[str]:
    """Yield the paragraphs of a quote: text, or its replacement, each below its introduction."""
    for (kind, lead), group in groupby(quote.sentences, key=lambda one: (one.kind if one.block else "text", one.lead)):
        texts = [_uncited(one, sources) for one in group]
        if kind == "text":
            yield from filter(None, [lead, *_running(texts)])
        elif lead:
            yield lead + ("\n" if kind == "row" else "\n\n") + "\n".join(texts)
        else:
            yield "\n".join(texts)


def _running(texts: Sequence[str]) -> Iterator[str]:
    """Yield sentences as paragraphs: what doesn't end like one, such as a title, is its own line."""
    paragraph = ""
    for text in texts:
        paragraph += text if not paragraph or paragraph.endswith(FULL_WIDTH_ENDS) else f" {text}"
        if not ends_as_sentence(text):
            yield paragraph
            paragraph = ""
    if paragraph:
        yield paragraph


def _uncited(sentence: Sentence, sources: int) -> str:
    """Return a sentence in which no number in brackets is taken for a citation, without a visible change."""

    def parted(match: re.Match[str]) -> str:
        is_ours = any(1 <= number <= sources for number in cited_numbers(match))
        return match[0][0] + WORD_JOINER + match[0][1:] if is_ours else match[0]

    return CITATION.sub(parted, sentence.text)
