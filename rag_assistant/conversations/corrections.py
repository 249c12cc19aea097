"""Changes to what an answer rests on, since it was given: turns, summaries, and passages of documents."""

from collections.abc import Sequence

from msgspec import Struct

from rag_assistant.conversations.summary_lines import SummaryLine, read_lines
from rag_assistant.records import Conversation, Correction, Turn
from rag_assistant.retrieval.search import Retriever, corrections_of
from rag_assistant.storage.conversations.history import HistoryStore
from rag_assistant.storage.conversations.receipts import CorrectionStore


class Corrections(Struct, frozen=True):
    """Finds answers and summary lines that rest on something that has changed."""

    changed: CorrectionStore
    history: HistoryStore
    retriever: Retriever

    def of(self, turns: Sequence[Turn]) -> dict[int, list[Correction]]:
        """Return by id, for turns of one conversation, later changes to what their answers rest on."""
        corrections = self.changed.of(turns)
        gone = self.retriever.lost(source for turn in turns for source in turn.sources)
        for turn in turns:
            corrections.setdefault(turn.id, []).extend(corrections_of(turn.sources, gone))
        return corrections

    def of_summary(self, conversation: Conversation) -> list[tuple[SummaryLine, list[Correction]]]:
        """Return a summary's lines, each with later changes to what its turns cite; people's own words cite nothing."""
        lines = read_lines(conversation.summary.text) if conversation.summary else []
        cited = self.history.cited(conversation, {number for line in lines for number in line.turns})
        gone = self.retriever.lost(source for sources in cited.values() for source in sources)
        return [
            (line, [one for number in turns for one in corrections_of(cited.get(number, ()), gone, number)])
            for line in lines
            for turns in ([] if line.said_by_person else line.turns,)
        ]
