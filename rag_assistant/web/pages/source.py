"""The passage behind a citation, in its document and in words; and images of a document's pages."""

from collections.abc import Mapping
from contextlib import suppress
from datetime import date
from typing import Any

from babel.dates import format_skeleton
from flask import Blueprint, Response, make_response, render_template
from msgspec.structs import replace

from rag_assistant.answering.figures import UNREAD
from rag_assistant.documents.page_images import PageView
from rag_assistant.records import MAX_INT32, Document, Source, Turn, find_passage
from rag_assistant.records.errors import DocumentNotFound, SourceNotFound
from rag_assistant.retrieval.claims import repeated_range, sentences_citing
from rag_assistant.retrieval.follow_up import SHARE_BY_WORDS, SearchQuery
from rag_assistant.retrieval.tables import Tables, spelled_out
from rag_assistant.web.languages import gettext, language
from rag_assistant.web.markdown.passage import with_edges
from rag_assistant.web.markdown.render import render_document
from rag_assistant.web.pages.documents import document_page
from rag_assistant.web.pages.frame import drawer, frame
from rag_assistant.web.request_parsing import flag_asked, whole_number
from rag_assistant.web.routing import READ, services

blueprint = Blueprint("source_pages", __name__)


@blueprint.get("/turns/<int:turn_id>/sources/<int:n>", policy=READ)
def source(turn_id: int, n: int) -> str:
    """Show the document of source number ``n``, with the sentence marked that the answer relies on.

    If the document or the passage is gone, the passage is shown as it was sent to the model; whether it was Markdown is
    unknown then, only a table can be recognised.
    """
    turn = services().turns.get(turn_id)
    cited = next((one for one in turn.sources if one.n == n), None)
    if cited is None:
        raise SourceNotFound(turn.number, n)
    document: Document | None = None
    text = ""
    with suppress(DocumentNotFound):
        document = services().documents.get(cited.document_id)
        text = services().documents.text(cited.document_id).text
    range_found = find_passage(text, cited.text, cited.start, cited.end)
    around = _neighbours(turn, cited)
    if document is None or range_found is None:
        drawn = render_document(with_edges((), (cited.text,), ())) if Tables(cited.text).all else None
        return render_template(
            drawer("source.html"), source=cited, document=document, drawn=drawn, **around, **frame(None)
        )
    start, end = range_found
    first, last = _cited_range(turn, replace(cited, text=text[start:end])) or (0, end - start)
    return document_page(document, start + first, start + last, source=cited, **around)


@blueprint.get("/documents/<int:document_id>/pages/<int:number>.png", policy=READ)
def picture(document_id: int, number: int) -> Response:
    """Return an image of a page, ``start`` to ``end`` marked; with ``whole=0`` of the part with that passage."""
    start = whole_number("start", 0, 0, MAX_INT32) or 0
    passage = start, whole_number("end", start, 0, MAX_INT32) or 0
    view = PageView(number, passage, flag_asked("whole") is not False)
    response = make_response(services().page_images.picture(services().documents, document_id, view))
    response.mimetype = "image/png"
    response.headers["Content-Disposition"] = "inline"
    return response


def _cited_range(turn: Turn, source: Source) -> tuple[int, int] | None:
    """Return the part of a source that the answer repeats, or comes closest to; ``None``: all of it."""
    if (repeated := repeated_range(turn.answer, source.text)) is not None:
        return repeated
    how = turn.search or {}
    context = how.get("follow_up_context") or ""
    text = " ".join([how.get("query") or turn.question, *sentences_citing(turn.answer, source.n)])
    query = SearchQuery(text, context, SHARE_BY_WORDS if context else 0.0)
    return services().retriever.sources.nearest_range(query, source)


def _neighbours(turn: Turn, source: Source) -> dict[str, Any]:
    """Return a source's position among those of its turn, and the numbers of its neighbours."""
    numbers = [one.n for one in turn.sources]
    at = numbers.index(source.n)
    return {
        "turn": turn,
        "at": at + 1,
        "count": len(numbers),
        "previous": numbers[at - 1] if at else None,
        "following": numbers[at + 1] if at + 1 < len(numbers) else None,
    }


@blueprint.app_template_filter()
def name_of_source(source: Source) -> str:
    """Return a source's name on the page."""
    return source.document if source.turn is None else gettext("Earlier conversation, turn {n}", n=source.turn)


@blueprint.app_template_filter()
def beside_figure(turn: Turn, note: str) -> Source | None:
    """Return the source beside the unread figure that a note is about, ``None`` for any other note."""
    return next((one for one in turn.sources if note == UNREAD.format(n=one.page, name=one.document)), None)


@blueprint.app_template_filter()
def date_of(iso: str | None) -> str:
    """Return a date in ISO 8601 in the reader's language: 3 Sept 2026, Sept 2026 or 2026; other text as it is."""
    try:
        first = date.fromisoformat(f"{iso}-01-01"[:10])
    except ValueError:  # An archive may have anything.
        return iso or ""
    return format_skeleton(("y", "yMMM", "yMMMd")[min(str(iso).count("-"), 2)], first, locale=language().locale)


@blueprint.app_template_filter()
def doubts_of(turn: Turn) -> list[tuple[Source, dict[str, Any]]]:
    """Return the doubtful citations of a turn, each with its source."""
    return [(source, doubt) for source in turn.sources for doubt in source.doubts]


@blueprint.app_template_filter()
def doubt_in_words(doubt: Mapping[str, Any], n: int) -> str:
    """Return a doubt about a citation of source ``n`` in words."""
    listed = ", ".join(f"“{one}”" for one in doubt["missing"])
    sentence = {
        "number": f"{listed} is not in source {n}.",
        "name": f"{listed} is not in source {n}.",
        "negation": f"Source {n} seems to say the opposite.",
        "words": f"Source {n} does not seem to say this.",
    }[doubt["problem"]]
    return f"{sentence} Source {doubt['carried_by']} seems to support it." if doubt["carried_by"] else sentence


@blueprint.app_template_filter()
def on_one_line(text: str) -> str:
    """Return a passage as one line, without heading markup, each table row with its header."""
    return " ".join(word for word in spelled_out(text).split() if word.strip("#"))
