"""Report what could be wrong with a library and the answers that rest on it, when somebody asks for that.

What was read of a text is remembered, so that the next report continues where one ended for lack of time.
"""

import time
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from rag_assistant.extraction.formats.texts import is_misread, is_no_language
from rag_assistant.records import MAX_INT32, Document, Turn
from rag_assistant.records.reports import LibraryReport, NearCopies, ReportedDocument, ReportedQuestion
from rag_assistant.records.views import CorrectionAnswer, view_of
from rag_assistant.retrieval.near_copies import MIN_LETTERS, Sketch, near_copies, sketch_of
from rag_assistant.retrieval.search import Retriever, corrections_of
from rag_assistant.storage.conversations.versions import AnsweredQuestions
from rag_assistant.storage.documents.chunks import ChunkStore
from rag_assistant.storage.documents.documents import DocumentStore
from rag_assistant.storage.documents.rows import UNFINISHED

# How much a report looks at, for how long it reads texts, and how many lines each of its lists has.
MAX_DOCUMENTS, MAX_QUESTIONS, MAX_SECONDS, MAX_LINES = 10_000, 2_000, 20.0, 100
# What is read at once, and how many texts are remembered, in 2 kB each.
CHUNKS_AT_ONCE, QUESTIONS_AT_ONCE, MAX_TEXTS = 5_000, 500, 20_000
# A text is judged in so many places, each of so many characters.
PLACES, PLACE_CHARS = 3, 1_500
# A document is new until so many questions were asked and so many days have passed.
MIN_QUESTIONS, MIN_DAYS = 20, 14
# The sketch of a text, ``None`` if it is too short to be compared; and whether it is garbled.
ReadText = tuple[Sketch | None, bool]


def read_text(text: str) -> ReadText:
    """Return what a report needs of a text."""
    step = max(PLACE_CHARS, (len(text) - PLACE_CHARS) // (PLACES - 1))
    places = [text[start : start + PLACE_CHARS] for start in range(0, len(text), step)]
    # Symbols in one place may be a drawing.
    return sketch_of(text), any(map(is_no_language, places)) or is_misread("".join(places))


class LibraryReports(Struct, frozen=True):
    """Makes a person's reports; ``read`` has what everybody's have read, by the first chunk of the text."""

    questions: AnsweredQuestions
    documents: DocumentStore
    chunks: ChunkStore
    retriever: Retriever
    read: dict[int, ReadText]

    def report(self, *, counts_others: bool) -> LibraryReport:
        """Return a report; ``counts_others``: with the number of other people's questions that found nothing."""
        page = self.documents.page(MAX_DOCUMENTS + 1, guide=False)
        documents = [one for one in page[:MAX_DOCUMENTS] if one.replaces is None]
        limits = [f"Only the newest {MAX_DOCUMENTS} documents were looked at."] if len(page) > MAX_DOCUMENTS else []
        texts = self._texts(documents, limits)
        if short := sum(sketch is None for _, (sketch, _) in texts):
            limits.append(f"Documents with fewer than {MIN_LETTERS} letters and digits, not compared: {short}.")
        count, lists = self._asked(documents)
        if count == MAX_QUESTIONS:
            limits.append(f"Only the newest {MAX_QUESTIONS} questions were looked at.")
        lists["near_copies"] = list(_copies_of(texts))
        lists["garbled"] = [view_of(ReportedDocument, one) for one, (_, is_garbled) in texts if is_garbled]
        lists["unread"] = [
            view_of(ReportedDocument, one) for one in documents if one.reason and one.state not in UNFINISHED
        ]
        return LibraryReport(
            documents=len(documents),
            questions=count,
            counts={name: len(lines) for name, lines in lists.items()},
            others_unanswered=self.questions.of_others_without_sources(MAX_QUESTIONS) if counts_others else None,
            limits=limits,
            **{name: lines[:MAX_LINES] for name, lines in lists.items()},
        )

    def _texts(self, documents: Sequence[Document], limits: list[str]) -> list[tuple[Document, ReadText]]:
        """Return what was read of the texts of documents, for which there was time."""
        end, first = time.monotonic() + MAX_SECONDS, self.chunks.first_of_documents()
        pending = [one for one in documents if one.id in first and first[one.id] not in self.read]
        while pending and time.monotonic() < end:
            ids, count = list[int](), 0
            while pending and (not ids or count + pending[-1].chunks <= CHUNKS_AT_ONCE):
                count += pending[-1].chunks
                ids.append(pending.pop().id)
            for document_id, text in self.chunks.beginnings(ids, MAX_INT32).items():
                self.read[first[document_id]] = read_text(text)
        for oldest in list(self.read)[: max(0, len(self.read) - MAX_TEXTS)]:
            self.read.pop(oldest, None)
        if left := len(pending):
            limits.append(f"Documents not compared for lack of time: {left}. Open the report again to continue.")
        return [(one, self.read[first[one.id]]) for one in documents if first.get(one.id) in self.read]

    def _asked(self, documents: Sequence[Document]) -> tuple[int, dict[str, list[Any]]]:
        """Return the number of questions, and the lists that come from them."""
        outdated, used, times = [], set[int](), list[datetime]()
        unanswered: dict[str, ReportedQuestion] = {}
        count, first_id = 0, MAX_INT32
        while count < MAX_QUESTIONS and (page := self.questions.page(QUESTIONS_AT_ONCE, first_id)):
            count, first_id = count + len(page), page[-1].id
            used |= self.questions.found_before([turn.id for turn in page])
            used |= {source.document_id for turn in page for source in turn.sources}
            # Others could not have found every document.
            times += [turn.created_at for turn in page if turn.search and not turn.scope]
            lost = self.retriever.lost(source for turn in page for source in turn.sources)
            shown = self.questions.shown([turn.id for turn in page])
            for turn in (turn for turn in page if turn.id in shown):
                if changes := corrections_of(turn.sources, lost):
                    outdated.append(_question(turn, changes=[view_of(CorrectionAnswer, one) for one in changes]))
                if not turn.scope and turn.support != "cited" and (turn.search or {}).get("support") == "nothing_found":
                    text = " ".join(turn.question.casefold().split())
                    last = unanswered.get(text) or _question(turn, times=0)
                    unanswered[text] = replace(last, times=last.times + 1)
        unused = list(_unused([one for one in documents if one.id not in used], sorted(times)))
        return count, {"outdated": outdated, "unanswered": list(unanswered.values()), "unused": unused}


def _question(turn: Turn, **more: Any) -> ReportedQuestion:
    rating = turn.rating.rating if turn.rating and turn.rating.version == turn.version else None
    own = (turn.conversation_id, turn.number, turn.id, turn.question, turn.created_at)
    return ReportedQuestion(*own, rating=rating, **more)


def _unused(documents: Sequence[Document], times: Sequence[datetime]) -> Iterator[ReportedDocument]:
    """Yield those of some documents that were there while many questions were asked, at sorted ``times``."""
    for one in documents:
        after = len(times) - bisect_right(times, one.created_at)
        is_new = after < MIN_QUESTIONS or datetime.now(UTC) - one.created_at < timedelta(days=MIN_DAYS)
        if one.state == "ready" and not is_new:
            yield replace(view_of(ReportedDocument, one), questions=after, since=max(one.created_at, times[0]))


def _copies_of(texts: Sequence[tuple[Document, ReadText]]) -> Iterator[NearCopies]:
    """Yield documents with nearly the same text, the newer one first if that is known."""
    # Oldest first, so that a copy added later takes no pair from the lines.
    compared = [(document, sketch) for document, (sketch, _) in reversed(texts) if sketch is not None]
    for one, other, is_identical in near_copies([sketch for _, sketch in compared]):
        older, newer = sorted((compared[one][0], compared[other][0]), key=lambda document: document.date)
        # May 2024 isn't older than 3 May 2024; and a file's time can't be compared with the date in a text.
        origins = {older.date_from, newer.date_from}
        is_known = "added" not in origins and (origins == {"file"} or "file" not in origins)
        is_known = is_known and not newer.date.startswith(older.date)
        pair = [view_of(ReportedDocument, newer), view_of(ReportedDocument, older)]
        yield NearCopies(pair, is_identical, newer.id if is_known else None)
