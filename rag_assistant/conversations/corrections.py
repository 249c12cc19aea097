"""Changes to what an answer rests on, since it was given: turns, summaries, and passages of documents."""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Literal

from msgspec import Struct

from rag_assistant.conversations.summary_lines import SummaryLine, read_lines
from rag_assistant.records import Conversation, Correction, Source, Turn, find_passage
from rag_assistant.records.errors import DocumentNotFound
from rag_assistant.retrieval.search import Retriever
from rag_assistant.storage.conversations.history import HistoryStore
from rag_assistant.storage.conversations.receipts import CorrectionStore
from rag_assistant.storage.documents.documents import DocumentStore

# Identifies a cited passage: its document, its start, its text.
Place = tuple[int, int, str]


class Corrections(Struct, frozen=True):
    """Finds answers and summary lines that rest on something that has changed."""

    changed: CorrectionStore
    history: HistoryStore
    documents: DocumentStore
    retriever: Retriever

    def of(self, turns: Sequence[Turn]) -> dict[int, list[Correction]]:
        """Return by id, for turns of one conversation, later changes to what their answers rest on."""
        corrections = self.changed.of(turns)
        gone = self._gone(source for turn in turns for source in turn.sources)
        for turn in turns:
            corrections.setdefault(turn.id, []).extend(_those_of(turn.sources, gone))
        return corrections

    def of_summary(self, conversation: Conversation) -> list[tuple[SummaryLine, list[Correction]]]:
        """Return a summary's lines, each with later changes to what its turns cite; people's own words cite nothing."""
        lines = read_lines(conversation.summary.text) if conversation.summary else []
        cited = self.history.cited(conversation, {number for line in lines for number in line.turns})
        gone = self._gone(source for sources in cited.values() for source in sources)
        return [
            (line, [one for number in turns for one in _those_of(cited.get(number, ()), gone, number)])
            for line in lines
            for turns in ([] if line.said_by_person else line.turns,)
        ]

    def _gone(self, sources: Iterable[Source]) -> dict[Place, Literal["changed", "deleted"]]:
        """Return which cited passages are no longer in the library, and why."""
        cited = {_place(one): one for one in sources if one.cited and one.turn is None}
        standing = set(map(_place, self.retriever.standing(list(cited.values())))) if cited else set()
        left = {place: source for place, source in cited.items() if place not in standing}
        # A document with different chunks may still contain them all.
        texts: dict[int, str | None] = dict.fromkeys(source.document_id for source in left.values())
        for document_id in texts:
            with suppress(DocumentNotFound):
                texts[document_id] = self.documents.text(document_id).text
        return {
            place: "deleted" if text is None else "changed"
            for place, source in left.items()
            if (text := texts[source.document_id]) is None
            or find_passage(text, source.text, source.start, source.end) is None
        }


def _place(source: Source) -> Place:
    return source.document_id, source.start, source.text


def _those_of(
    sources: Iterable[Source], gone: Mapping[Place, Literal["changed", "deleted"]], turn: int | None = None
) -> list[Correction]:
    return [
        Correction("source", gone[place], turn=turn, n=one.n, document=one.document)
        for one in sources
        if one.cited and (place := _place(one)) in gone
    ]
