"""What people can do with the model's view: inspect it, try another window, compact it, edit the summary.

Nothing here shortens or deletes a turn; each change can be undone. Simpler changes are made by the HistoryStore.
"""

from collections.abc import Callable, Sequence
from typing import Any

from msgspec import Struct, to_builtins
from msgspec.structs import asdict, replace

from rag_assistant.conversations.bill import AS_TICKED, Bill, Wishes
from rag_assistant.conversations.compaction import Compaction, first_kept_after_compaction
from rag_assistant.conversations.model_profile import ModelProfile, profile_for
from rag_assistant.conversations.viewed_history import SentHistory, ViewedHistory
from rag_assistant.conversations.window import Rules, fit_window, load_window, rules_for
from rag_assistant.history import FittedHistory, HistoryStrategy, LeftOut, hidden_until
from rag_assistant.history.words import seen, turns_by_reason
from rag_assistant.llm.calls import ModelCall
from rag_assistant.llm.endpoint import Endpoint
from rag_assistant.llm.models import LanguageModels
from rag_assistant.records import UNSET, Conversation, Message, Unset, runs_of
from rag_assistant.records.errors import InvalidRequest, NothingToSummarise, QuestionDoesNotFit
from rag_assistant.settings.schema import Settings
from rag_assistant.storage.conversations.conversations import ConversationManager
from rag_assistant.storage.conversations.history import HistoryStore
from rag_assistant.storage.conversations.notes import NoteStore

MAX_SUMMARY_CHARS = 20_000


class HistoryView(Struct, frozen=True):
    """What the model would see of a conversation if you asked now.

    ``horizon`` is the number of the first turn of the newest complete part, ``None`` if there is none. ``can_undo``
    names the last change. Tokens are estimates.
    """

    conversation: Conversation
    rules: Rules
    fitted: FittedHistory
    limit: int | None
    can_undo: str | None

    @property
    def horizon(self) -> int | None:
        """Where the newest part begins."""
        hidden = hidden_until(self.left_out)
        return next((number for number in self.fitted.receipt.kept_turns if number > hidden), None)

    @property
    def has_horizon(self) -> bool:
        """Whether the view begins below the conversation's first turn."""
        return hidden_until(self.left_out) > 0

    @property
    def left_out(self) -> tuple[LeftOut, ...]:
        """The runs of turns that aren't seen, with reasons."""
        return self.fitted.receipt.left_out

    @property
    def sentence(self) -> str:
        """What is seen and what is not, in words."""
        return seen(self.fitted.receipt.turns_kept, turns_by_reason(self.left_out))

    @property
    def tokens(self) -> dict[str, Any]:
        """The estimated tokens of the next request: each part, the total, and the limit."""
        tokens = {name: tokens for name, tokens in self.fitted.receipt.tokens.items() if name != "question"}
        return tokens | {"total": sum(tokens.values()), "limit": self.limit}

    def as_dict(self) -> dict[str, Any]:
        """Return the view as in the API."""
        receipt = self.fitted.receipt
        summary = self.conversation.summary
        return {
            "max_history_turns": self.rules.max_history_turns,
            "strategy": self.rules.strategy,
            "on_overflow": self.rules.on_overflow,
            "context_start": self.conversation.context_start,
            "first_visible_turn": receipt.first_kept_turn,
            "horizon": self.horizon,
            "has_horizon": self.has_horizon,
            "kept_turns": runs_of(receipt.kept_turns),
            "turns_kept": receipt.turns_kept,
            "turns_dropped": receipt.turns_dropped,
            "left_out": [asdict(run) for run in self.left_out],
            "sentence": self.sentence,
            "notice": self.fitted.notice,
            "summary": summary and {name: value for name, value in to_builtins(summary).items() if name != "id"},
            "undo": self.can_undo,
            "tokens": self.tokens,
        }


class HistoryActions(Struct, frozen=True):
    """Applies people's decisions about the model's view of a conversation."""

    conversations: ConversationManager
    history: HistoryStore
    models: LanguageModels
    tool_schemas: Callable[[], Sequence[dict[str, Any]]]
    settings: Callable[[], Settings]
    notes: NoteStore

    def view(
        self,
        conversation_id: int,
        max_history_turns: int | Unset | None = UNSET,
        strategy: HistoryStrategy | None = None,
    ) -> HistoryView:
        """Return what the model would see next, or with another window or strategy. Raises ConversationNotFound."""
        settings = self.settings()
        conversation = self.conversations.get(conversation_id)
        rules = rules_for(conversation, settings)
        if not isinstance(max_history_turns, Unset):
            rules = replace(rules, max_history_turns=max_history_turns)
        if strategy is not None:
            rules = replace(rules, strategy=strategy)
        endpoint, last_change = self.models.known_endpoint(), self.history.last_change(conversation_id)
        fitted = self._fitted(self.history, conversation, rules, settings, endpoint)
        return HistoryView(conversation, rules, fitted, endpoint.context_tokens, last_change)

    def bill(self, conversation_id: int) -> Bill:
        """Return what a summary by ``compact`` may lose. Raises NothingToSummarise."""
        conversation, settings = self.conversations.get(conversation_id), self.settings()
        endpoint = self.models.known_endpoint()
        keep_from = self._keep_from(conversation, self.history, settings, endpoint)
        compaction = Compaction(self.conversations, self.history, self.models)
        turns = compaction.turns_to_summarise(conversation, keep_from)
        return compaction.bill(conversation, turns, self._profile(settings, endpoint))

    def compact(self, which: int | SentHistory, wishes: Wishes = AS_TICKED) -> tuple[Conversation, str]:
        """Summarise the older half of what the model sees, and everything left out before it; return how.

        Of a history that was sent along, nothing is stored. Raises NothingToSummarise, InvalidRequest, HistoryChanged,
        ConversationBusy, LimitReached, or that no model is known; then nothing has changed.
        """
        history: ViewedHistory = which if isinstance(which, SentHistory) else self.history
        conversation = which.conversation if isinstance(which, SentHistory) else self.conversations.get(which)
        settings, call = self.settings(), ModelCall()
        endpoint = self.models.endpoint(call)
        keep_from = self._keep_from(conversation, history, settings, endpoint)
        if self.models.connected:
            self.models.refuse_beyond_limits()
        return Compaction(self.conversations, history, self.models).compact(
            conversation, keep_from, self._profile(settings, endpoint), call, lambda _sentence: None, wishes=wishes
        )

    def _profile(self, settings: Settings, endpoint: Endpoint) -> ModelProfile:
        return profile_for(endpoint, settings, self.models.calibration.ratio(endpoint))

    def _keep_from(
        self, conversation: Conversation, history: ViewedHistory, settings: Settings, endpoint: Endpoint
    ) -> int:
        """Return the number of the first turn that a compaction leaves unchanged. Raises NothingToSummarise."""
        fitted = self._fitted(history, conversation, rules_for(conversation, settings), settings, endpoint)
        keep_from = first_kept_after_compaction(fitted, conversation.turns + 1)
        if keep_from <= conversation.view_start and not conversation.held_turns:
            named = f"Conversation {conversation.id}" if conversation.id else "The conversation"
            raise NothingToSummarise(
                f"{named} is too short to summarise: the newest turns are never summarised, "
                "and there are none before them."
            )
        return keep_from

    def edit_summary(self, conversation_id: int, text: str) -> Conversation:
        """Replace the summary's text with an edited one. Raises NoSummary, InvalidRequest, ConversationBusy."""
        if not text.strip():
            raise InvalidRequest("The summary is empty. To do without one, undo it.")
        if len(text) > MAX_SUMMARY_CHARS:
            raise InvalidRequest(f"The summary has {len(text)} characters; the limit is {MAX_SUMMARY_CHARS}.")
        return self.history.edit_summary(conversation_id, text.strip())

    def _fitted(
        self, history: ViewedHistory, conversation: Conversation, rules: Rules, settings: Settings, endpoint: Endpoint
    ) -> FittedHistory:
        """Fit the window as for an empty question."""
        window = load_window(history, conversation, conversation.turns + 1, rules, settings)
        ratio = self.models.calibration.ratio(endpoint)
        profile = profile_for(endpoint, settings, ratio, self.tool_schemas(), project=conversation.project)
        question: Message = {"role": "user", "content": ""}
        try:
            return fit_window(window, profile, question)
        except QuestionDoesNotFit:
            return fit_window(window, replace(profile, request_tokens=None), question)
