"""The window of one request: the rules in force, reading what they need, and fitting it.

The same code serves answers, the decision whether to ask first, and previews, so that they always agree.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from msgspec import Struct, convert
from msgspec.structs import replace

from rag_assistant import history
from rag_assistant.conversations.model_profile import ModelProfile
from rag_assistant.conversations.pictures import without_pictures
from rag_assistant.conversations.summary_lines import without_quotes
from rag_assistant.records import MAX_INT32, UNSET, Conversation, ConversationSearch, Message, PastTurn, Turn

if TYPE_CHECKING:
    from rag_assistant.conversations.viewed_history import ViewedHistory
    from rag_assistant.settings.schema import Settings


# Where None is a value: no limit.
NONE_IS_A_WORD = ("max_history_turns", "retention_days")


class Rules(Struct, frozen=True):
    """The rules of one request: its own options, else the conversation's, its project's, or the settings'."""

    max_history_turns: int | None
    strategy: history.HistoryStrategy
    on_overflow: history.OverflowChoice
    search_conversations: ConversationSearch = "off"
    notes: bool = True


class Window(Struct, frozen=True):
    """What is loaded of a conversation for one request: its messages, oldest first, their turns, and the rules.

    The policy lacks only what the model adds to it, see ``fit_window``.
    """

    conversation: Conversation
    rules: Rules
    messages: tuple[Message, ...]
    policy: history.HistoryPolicy
    turns: tuple[PastTurn, ...] = ()


def rules_for(conversation: Conversation, settings: Settings, turn: Turn | None = None) -> Rules:
    """Return the rules for a turn of a conversation, or for its next one."""
    layers = turn, conversation, conversation.project, settings
    limit = decided("max_history_turns", *layers)
    return Rules(
        max_history_turns=None if limit is None else min(limit, MAX_INT32),
        strategy=decided("history_strategy", *layers),
        on_overflow=decided("on_overflow", *layers),
        search_conversations=decided("search_conversations", turn and turn.options, *layers),
        notes=decided("notes", turn and turn.options, conversation, conversation.project, settings),
    )


def default_rules(conversation: Conversation, settings: Settings) -> Rules:
    """Return the rules that apply if a conversation overrides nothing."""
    silent = replace(conversation, max_history_turns=UNSET, history_strategy=None, on_overflow=None)
    return rules_for(silent, settings)


def decided(rule: str, *layers: Any) -> Any:
    """Return a rule's value from the first layer that sets it: turn, conversation, project, settings.

    ``UNSET`` and missing layers or fields set nothing; nor does ``None``, unless it is a value of its own.
    """
    nothing = (UNSET,) if rule in NONE_IS_A_WORD else (UNSET, None)
    return next(value for layer in layers if (value := getattr(layer, rule, UNSET)) not in nothing)


def load_window(
    store: ViewedHistory, conversation: Conversation, before: int, rules: Rules, settings: Settings
) -> Window:
    """Read the turns before number ``before`` that the rules may keep."""
    total, most = conversation.visible_turns, rules.max_history_turns
    newest = None if most is None else history.turns_in_window(total, most, settings.window_slack)
    if rules.strategy == "smart":
        newest = min(total, history.TURNS_WORTH_READING)
    turns = store.past(conversation, before, newest)
    if not settings.model_images:
        turns = [without_pictures(turn) for turn in turns]
    # What people's decisions leave out: a reset that made room for this turn is reported with it, and a run whose turns
    # are all pinned leaves nothing out.
    standing = [
        history.left_out(
            **{name: value for name, value in run.items() if name != "made_room"},
            by_reset=run.get("made_room", False) and conversation.context_start == before,
        )
        for run in conversation.standing_runs
        if run["turns"]
    ]
    return Window(
        conversation=conversation,
        rules=rules,
        messages=tuple(message for turn in turns for message in turn.messages),
        policy=history.HistoryPolicy(
            max_history_turns=rules.max_history_turns,
            strategy=rules.strategy,
            tool_iterations_keep=settings.tool_iterations_keep,
            window_slack=settings.window_slack,
            merge_system_messages=settings.merge_system_messages,
            pinned=tuple(turn.number for turn in turns if turn.pinned),
            pending=tuple(turn.waiting_call for turn in turns if turn.waiting_call is not None),
            summary=convert(conversation.summary, history.HistorySummary | None, from_attributes=True),
            unread=(*standing, *_unread(conversation, before, turns, newest, rules)),
            turn_numbers=(*(turn.number for turn in turns), before),
            skipped=tuple(one.number for one in _in_view(conversation, turns) if one.number < conversation.view_start),
        ),
        turns=tuple(turns),
    )


def fit_window(
    window: Window, profile: ModelProfile, question: Message, iterations: Sequence[Message] = ()
) -> history.FittedHistory:
    """Return what the model sees, with the answer's tool iterations so far. Pure. Raises QuestionDoesNotFit."""
    policy = replace(
        window.policy,
        count_tokens=profile.count_tokens,
        token_budget=profile.request_tokens,
        reserved_tokens=profile.tool_tokens,
    )
    system: Message = {"role": "system", "content": profile.instructions}
    past = [
        one | {"content": without_quotes(one["content"])}
        if one["role"] == "assistant" and isinstance(one.get("content"), str)
        else one
        for one in window.messages
    ]
    return history.fit_history([system, *past, question, *iterations], policy)


def _in_view(conversation: Conversation, turns: Sequence[PastTurn]) -> list[PastTurn]:
    """Return the turns that the window chooses from: those after a summary, and those that it skipped."""
    return [one for one in turns if one.number >= conversation.view_start or not (one.pinned or one.waiting_call)]


def _unread(
    conversation: Conversation, before: int, turns: Sequence[PastTurn], newest: int | None, rules: Rules
) -> list[history.LeftOut]:
    """Return the run of turns that are in the view but weren't read, if any."""
    read = _in_view(conversation, turns)
    unread = conversation.visible_turns - len(read)
    if unread <= 0 or newest is None:
        return []
    last = (read[-newest].number if newest else before) - 1
    unread_messages = conversation.visible_messages - sum(len(turn.messages) + turn.purged_messages for turn in read)
    reason: history.LeftOutReason = "filtered" if rules.strategy == "smart" else "turn_limit"
    return [history.left_out(reason, unread, unread_messages, conversation.view_start, last)]
