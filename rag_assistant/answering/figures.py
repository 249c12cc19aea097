"""Pages with a figure: their pictures go to a model that takes pictures; others are named where it seems to matter."""

from __future__ import annotations

import time
from base64 import b64encode
from contextlib import suppress
from typing import TYPE_CHECKING

from msgspec.structs import replace

from rag_assistant.conversations.pictures import MAX_PICTURE_BYTES
from rag_assistant.records import QUOTES
from rag_assistant.records.documents import CAPTION, FIGURE, FIGURE_KIND, TREND
from rag_assistant.records.errors import DocumentNotFound, PageNotDrawn
from rag_assistant.retrieval.claims import CITATION, cited_numbers
from rag_assistant.retrieval.tokenize import content_stems

if TYPE_CHECKING:
    from rag_assistant.answering.request import Draft
    from rag_assistant.answering.task import Task

# Drawing the pages of an answer takes no longer.
MAX_SECONDS = 5.0
MAX_NAMED = 2
UNREAD = "Page {n} of {name} has a figure that was not read."


def is_about_figure(question: str, passage: str, quote: str = "") -> bool:
    """Return whether a question seems to be about a figure beside a passage: its number, its kind or its caption.

    Beside a ``quote`` of it, a word of the caption is enough, as is a quote or a question such as figures answer.
    """
    if numbers := set(FIGURE.findall(question)):
        return not numbers.isdisjoint(FIGURE.findall(passage))
    if quote and (TREND.search(question) or FIGURE.search(quote)):
        return True
    words = content_stems(question)
    enough = 0 if quote else max(1, len(words) / 2)
    shared = (len(words & content_stems(FIGURE.sub("", caption[0]))) for caption in CAPTION.finditer(passage))
    return FIGURE_KIND.search(question) is not None or any(count > enough for count in shared)


def with_page_images(draft: Draft, task: Task) -> Draft:
    """Return the draft with pictures of pages that text doesn't show, those first that the question is about.

    A page that isn't drawn in time is left out. Raises AnswerStopped.
    """
    settings, deps, live = task.settings, task.deps, task.live
    sources = [one for one in draft.found.sources if one.page and settings.model_images and settings.max_page_images]
    is_refused = deps.models.blind.get(draft.profile.endpoint.key) == deps.settings()
    if is_refused or not sources or draft.profile.tools or draft.profile.endpoint.quotes:
        return draft
    pages = deps.documents.pages_to_see({one.document_id for one in sources}, scans=True)
    first = {(one.document_id, one.page): one for one in reversed(sources)}
    seen = [one for page, one in first.items() if page in pages]
    seen.sort(key=lambda one: (not is_about_figure(draft.question, one.text), one.n))
    end, images = time.monotonic() + MAX_SECONDS, list[tuple[int, str]]()
    for one in seen[: settings.max_page_images]:
        live.tell("searching", "Looking at pages with figures.")
        live.call.refuse_stopped()
        with suppress(PageNotDrawn, DocumentNotFound):
            left = max(0.1, end - time.monotonic())
            picture = deps.draw_page(deps.documents, one.document_id, one.page or 0, left)
            if len(picture) <= MAX_PICTURE_BYTES:
                images.append((one.n, f"data:image/png;base64,{b64encode(picture).decode()}"))
    return replace(draft, page_images=tuple(sorted(images)))


def note_unread(task: Task) -> None:
    """Note which pages have a figure that the question is about and the model didn't see, one of each document.

    They are those of cited passages; if the question names a figure, of their documents, or of all if nothing is cited.
    """
    turn = task.live.turn
    text = task.live.text()
    quote = text if turn.model == QUOTES else ""
    cited = {number for match in CITATION.finditer(text) for number in cited_numbers(match)}
    names_one = FIGURE.search(turn.question) or (not cited and FIGURE_KIND.search(turn.question))
    documents = {one.document_id for one in turn.sources if names_one and (not cited or one.n in cited)}
    sources = [one for one in turn.sources if one.page and (one.n in cited or one.document_id in documents)]
    if about := [one for one in sources if is_about_figure(turn.question, one.text, quote)]:
        pages = task.deps.documents.pages_to_see({one.document_id for one in about})
        pages -= {(one.document_id, one.page or 0) for one in turn.sources if one.page_image}
        about.sort(key=lambda one: one.n not in cited)
        first = {one.document_id: one for one in reversed(about) if (one.document_id, one.page) in pages}
        for one in sorted(first.values(), key=about.index)[:MAX_NAMED]:
            task.live.note(UNREAD.format(n=one.page, name=one.document))
