"""What happens when a request would leave turns out: ask a person first, or carry out what was decided."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from rag_assistant.conversations.compaction import Compaction, first_kept_after_compaction
from rag_assistant.conversations.window import Moved, Rules, load_window, moved_between
from rag_assistant.errors import (
    HistoryChanged,
    ModelError,
    NothingToSummarise,
    OverflowDecisionNeeded,
    SummaryRejected,
)
from rag_assistant.history import OPTIONS
from rag_assistant.presenters.history import figures_in_words, sentence_about

if TYPE_CHECKING:
    from rag_assistant.answering.request import BuiltRequest, Draft
    from rag_assistant.llm.calls import ModelCall
    from rag_assistant.llm.models import LanguageModels
    from rag_assistant.records import Conversation
    from rag_assistant.settings.schema import Settings
    from rag_assistant.storage.conversations.conversations import ConversationManager
    from rag_assistant.storage.conversations.history import HistoryStore

CONTINUED = "All earlier turns were sent this once, up to the model's limit."
RESET = "The model started over with this question and saw none of the earlier turns. You can undo this."
COMPACTED = "Older turns were summarised. You can read, edit and undo the summary."
NOT_COMPACTED = "The older turns could not be summarised, so they were left out. {}"


def refuse_undecided(built: BuiltRequest) -> None:
    """Refuse a request that would leave out turns which nobody has agreed to leave out.

    Raises OverflowDecisionNeeded with the choices and the figures.
    """
    receipt, endpoint = built.fitted.receipt, built.draft.profile.endpoint
    decided = built.draft.window.conversation.decided_until
    undecided = [run for run in receipt.left_out if run.trimmed and run.last_turn > decided]
    if not undecided:
        return
    sentence = sentence_about(undecided, receipt)
    # The built-in model cannot summarise: what cannot be done is not offered.
    options = {name: does for name, does in OPTIONS.items() if name != "compact" or not endpoint.built_in}
    raise OverflowDecisionNeeded(
        f"{sentence} Say with on_overflow what to do: {', '.join(options)}.",
        {
            "sentence": sentence,
            "figures": figures_in_words(built.fitted, endpoint.context_tokens),
            "options": options,
            "history": built.figures,
        },
    )


@dataclass(frozen=True, slots=True)
class OverflowHandling:
    """Makes room for a question as it was decided, at most once for an answer."""

    conversations: ConversationManager
    history: HistoryStore
    models: LanguageModels

    def make_room(
        self, built: BuiltRequest, turn_number: int, settings: Settings, call: ModelCall, tell: Callable[[str], None]
    ) -> tuple[Draft, str | None]:
        """Return the draft after the decision for its overflow was carried out, with a sentence about it.

        Where nothing would be left out, or that was the decision, the draft is as it was.
        """
        draft = replace(built.draft, recalled=())
        decision = draft.window.rules.on_overflow
        if not built.fitted.history_trimmed or decision in ("trim", "ask"):
            return built.draft, None
        if decision == "continue":
            everything = replace(draft.window.rules, max_history_turns=None, strategy="window")
            draft = replace(draft, ignores_budget=True)
            return self._reloaded(draft, turn_number, settings, rules=everything), CONTINUED
        before = draft.window.conversation
        if decision == "reset":
            after = self.history.move_context_start(before.id, "reset", turn_number)
            return self._reloaded(draft, turn_number, settings, after, moved_between(before, after, "cleared")), RESET
        try:
            after = self._compacted(built, turn_number, call, tell)
        except (ModelError, SummaryRejected, NothingToSummarise, HistoryChanged) as error:
            return draft, NOT_COMPACTED.format(error)
        finally:
            call.restart_deadline()
        moved = moved_between(before, after, "summarised")
        return self._reloaded(draft, turn_number, settings, after, moved), COMPACTED

    def _compacted(
        self, built: BuiltRequest, turn_number: int, call: ModelCall, tell: Callable[[str], None]
    ) -> Conversation:
        return Compaction(self.conversations, self.history, self.models).compact(
            built.draft.window.conversation,
            first_kept_after_compaction(built.fitted, turn_number),
            built.draft.profile,
            call,
            tell,
            turn_number,
        )

    def _reloaded(
        self,
        draft: Draft,
        turn_number: int,
        settings: Settings,
        conversation: Conversation | None = None,
        moved: Moved | None = None,
        rules: Rules | None = None,
    ) -> Draft:
        """Return the draft with its window read once more, as the decision left it."""
        window = load_window(
            self.history,
            conversation or draft.window.conversation,
            turn_number,
            rules or draft.window.rules,
            settings,
            moved,
        )
        return replace(draft, window=window)
