"""Ask rated questions again, with the current settings, model and library, and say what got better or worse.

Each is asked after the same earlier turns, in the same way as every question. Only the result is stored, with the
rating; the conversation is unchanged.
"""

from datetime import UTC, datetime
from typing import Any, Literal

from msgspec import Struct
from msgspec.structs import asdict

from rag_assistant.answering.answer import answer
from rag_assistant.answering.live import LiveTurn, stateless_turn
from rag_assistant.answering.scoring import Score, Verdict, compare, score_of, verdict_of
from rag_assistant.answering.task import Dependencies
from rag_assistant.records import Question, Turn
from rag_assistant.records.errors import ConversationNotFound
from rag_assistant.storage.conversations.branching import BranchStore
from rag_assistant.storage.conversations.versions import RatingStore

TURNS_AT_ONCE = 200


class Evaluated(Struct, frozen=True):
    """A rated question asked again.

    ``result`` is what is stored, ``None`` without an answer: then ``error`` says why. ``since_last`` compares it with
    the previous result, if there is one.
    """

    turn: Turn
    verdict: Verdict | Literal["failed"]
    result: dict[str, Any] | None = None
    since_last: Verdict | None = None
    error: str | None = None


class Evaluation(Struct, frozen=True):
    """Asks rated questions again. ``deps`` has the writer that stores nothing."""

    ratings: RatingStore
    branches: BranchStore
    deps: Dependencies

    def rated(self) -> list[Turn]:
        """Return all rated turns with the rated answers, oldest first."""
        turns: list[Turn] = []
        while page := self.ratings.page(TURNS_AT_ONCE, turns[-1].id if turns else None):
            turns += page
        return turns[::-1]

    def ask_again(self, turn: Turn) -> Evaluated:
        """Ask the question of a rated turn again, and store the result."""
        try:
            answered = self._answered(turn)
        except ConversationNotFound as error:
            return Evaluated(turn, "failed", error=str(error))
        if answered.error_message is not None or turn.rating is None:
            return Evaluated(turn, "failed", error=answered.error_message or "")
        before, now = score_of(turn, turn), score_of(turn, answered)
        checks = compare(before, now)
        verdict = verdict_of(checks)
        result = {
            "at": datetime.now(UTC).isoformat(),
            "verdict": verdict,
            "checks": checks,
            "before": asdict(before),
            "now": asdict(now),
            "answer": answered.answer,
            "model": answered.model,
        }
        last = turn.rating.result
        since_last = verdict_of(compare(Score(**last["now"]), now)) if last else None
        self.ratings.keep_result(turn.id, turn.rating.rated_at, result)
        return Evaluated(turn, verdict, result, since_last)

    def _answered(self, turn: Turn) -> Turn:
        """Return the turn with its current answer."""
        conversation = self.branches.conversation_before(turn)
        question = Question(
            turn.question,
            max_history_turns=turn.max_history_turns,
            scope=self.deps.documents.present(turn.scope),
            options=turn.options,
            # With "ask" an answer changes nothing in its conversation: what doesn't fit is left out.
            on_overflow="ask",
        )
        return answer(LiveTurn(stateless_turn(turn.id, question, conversation)), conversation, self.deps)
