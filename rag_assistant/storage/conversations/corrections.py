"""Changes people made to earlier turns after an answer that could draw on them."""

from collections.abc import Sequence

from sqlalchemy import Connection, select

from rag_assistant.records import Correction, Turn
from rag_assistant.storage.database import Store
from rag_assistant.storage.tables import HIDDEN, history_changes, receipts, summaries, turns


class CorrectionStore(Store):
    """Finds turns and summaries behind an answer that have changed since."""

    def of(self, shown: Sequence[Turn]) -> dict[int, list[Correction]]:
        """Return, by turn id, what was excluded, erased or edited after the answers of some turns of one conversation.

        Receipts are read only where something was.
        """
        answered = [turn for turn in shown if turn.history is not None]
        corrections: dict[int, list[Correction]] = {turn.id: [] for turn in answered}
        if not answered:
            return corrections
        summarised = [turn for turn in answered if (turn.history or {}).get("summary_sent")]
        edits = (
            select(history_changes.c.created_at, summaries.c.first_turn)
            .join(summaries, summaries.c.id == history_changes.c.before["summary_id"].as_integer())
            .where(history_changes.c.conversation_id == answered[0].conversation_id)
            .where(history_changes.c.kind == "edit summary")
        )
        with self._database.read() as connection:
            for turn_id, correction in self._hidden_turns(connection, answered):
                corrections[turn_id].append(correction)
            edited = connection.execute(edits).all() if summarised else []
        for turn in summarised:
            if any(first < turn.number and moment > (turn.finished_at or turn.created_at) for moment, first in edited):
                corrections[turn.id].append(Correction("summary", "edited"))
        return corrections

    @staticmethod
    def _hidden_turns(connection: Connection, answered: Sequence[Turn]) -> list[tuple[int, Correction]]:
        """Return excluded or erased turns that an answer could draw on, with the answer's id."""
        earlier = turns.c.number < max(turn.number for turn in answered)
        query = (
            select(turns.c.number, turns.c.excluded)
            .where(turns.c.conversation_id == answered[0].conversation_id, earlier, HIDDEN)
            .where(turns.c.excluded | turns.c.erased_at.is_not(None))
        )
        hidden = connection.execute(query.order_by(turns.c.number)).all()
        if not hidden:
            return []
        ids = [turn.id for turn in answered]
        rows = connection.execute(select(receipts).where(receipts.c.turn_id.in_(ids))).all()
        recalled = {turn.id: (turn.history or {}).get("recalled_turns", []) for turn in answered}
        return [
            (row.turn_id, Correction("turn", "excluded" if excluded else "erased", turn=number))
            for row in rows
            for number, excluded in hidden
            if (
                number in row.body.get("kept_turns", ()) or number in recalled[row.turn_id]
                if excluded
                else number in row.body.get("erased_turns", ())
            )
        ]
