"""Overflow, when a request would leave turns out: ask first, or apply the decision."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from msgspec.structs import replace

from rag_assistant.answering.request import build_request
from rag_assistant.conversations.compaction import Compaction, first_kept_after_compaction
from rag_assistant.conversations.window import load_window
from rag_assistant.history import UNANSWERED
from rag_assistant.history.words import figures_in_words, numbers_in_words, sentence_about
from rag_assistant.records.errors import HistoryChanged, NothingToSummarise, OverflowDecisionNeeded

if TYPE_CHECKING:
    from rag_assistant.answering.request import BuiltRequest, Draft
    from rag_assistant.answering.task import Task

CONTINUED = "All earlier turns were sent this once, up to the model's limit."
CONTINUED_IN_PART = (
    "All earlier turns were sent this once, up to the model's limit, except those that are summarised, excluded or "
    "from before you started over."
)
RESET = "The model started over with this question and saw none of the earlier turns. You can undo this."
NOTHING_OLDER = "Nothing can be summarised: the turns that would be left out are pinned."
NOT_COMPACTED = "The older turns could not be summarised, so they were left out. {}"
# With this many tokens, requests to some models take noticeable time, and cost noticeable money.
MANY_TOKENS = 10_000


def refuse_undecided(built: BuiltRequest, task: Task) -> None:
    """Raise OverflowDecisionNeeded, with choices and figures, if turns would be left out without anyone's consent."""
    receipt, endpoint = built.fitted.receipt, built.draft.profile.endpoint
    decided = built.draft.window.conversation.decided_until
    undecided = [run for run in receipt.left_out if run.trimmed and run.last_turn > decided]
    if not undecided:
        return
    sentence = sentence_about(undecided, receipt)
    figures = figures_in_words(built.fitted, endpoint.context_tokens, with_recalled=bool(built.draft.recalled))
    options = _outcomes(built, task)
    raise OverflowDecisionNeeded(
        f"{sentence} Set on_overflow to one of: {', '.join(options)}.",
        details={
            "sentence": sentence,
            "figures": figures,
            "options": options,
            "no_summary": None if "compact" in options else NOTHING_OLDER,
            "history": built.figures,
        },
    )


def make_room(built: BuiltRequest, task: Task) -> Draft:
    """Return the draft after applying the overflow decision, and add a note to the turn.

    If nothing would be left out, or if that was the decision, the draft is unchanged. If no summary could be made, its
    settings say ``trim``: that is done, without anybody's decision.
    """
    live, deps = task.live, task.deps
    decision, number = built.draft.window.rules.on_overflow, live.turn.number
    if decision in ("trim", "ask") or not built.fitted.receipt.turns_dropped:
        return built.draft
    draft = replace(built.draft, recalled=())
    window = draft.window
    if decision == "continue":
        # Turns without an answer aren't missed.
        stays_out = any(run["reason"] not in UNANSWERED for run in window.conversation.standing_runs)
        live.note(CONTINUED_IN_PART if stays_out else CONTINUED)
        return _with_everything(draft, task)
    if decision == "reset":
        live.note(RESET)
        conversation = deps.history.move_context_start(window.conversation.id, "reset", number)
    else:
        keep_from = first_kept_after_compaction(built.fitted, number)
        show = partial(live.tell, "compacting")
        try:
            conversation, note = _compaction(task).compact(
                window.conversation, keep_from, draft.profile, live.call, show, number
            )
        except (NothingToSummarise, HistoryChanged) as error:
            live.note(NOT_COMPACTED.format(error))
            return replace(draft, window=replace(window, rules=replace(window.rules, on_overflow="trim")))
        finally:
            live.call.restart_deadline()
        live.note(note)
    return replace(draft, window=load_window(deps.history, conversation, number, window.rules, task.settings))


def _outcomes(built: BuiltRequest, task: Task) -> dict[str, str]:
    """Return what each choice would do, by its code."""
    kept_turns, conversation = built.fitted.receipt.kept_turns, built.draft.window.conversation
    outcomes = {
        "trim": f"The model sees {numbers_in_words(kept_turns)}. "
        "The others stay in the transcript; a longer memory brings them back."
    }
    keep_from = first_kept_after_compaction(built.fitted, task.live.turn.number)
    covered = [turn.number for turn in _compaction(task).turns_to_summarise(conversation, keep_from)]
    # Impossible choices aren't offered.
    if covered:
        left = [number for number in kept_turns if number not in covered]
        outcomes["compact"] = (
            f"A summary replaces {numbers_in_words(covered)}; "
            f"the model also sees {numbers_in_words(left)}. You can edit or undo the summary."
        )
    outcomes["reset"] = "The model sees none of the earlier turns. You can undo this."
    receipt = build_request(_with_everything(replace(built.draft, recalled=()), task)).fitted.receipt
    tokens = sum(receipt.tokens.values())
    outcomes["continue"] = (
        f"The model sees {numbers_in_words(receipt.kept_turns)}, just this once: about {tokens:,} tokens."
        + ("" if built.draft.profile.endpoint.quotes or tokens < MANY_TOKENS else " This may be slow or expensive.")
    )
    return outcomes


def _compaction(task: Task) -> Compaction:
    return Compaction(task.deps.conversations, task.deps.history, task.deps.models)


def _with_everything(draft: Draft, task: Task) -> Draft:
    """Return the draft with all turns in view, up to the model's limit."""
    rules = replace(draft.window.rules, max_history_turns=None, strategy="window")
    number = task.live.turn.number
    window = load_window(task.deps.history, draft.window.conversation, number, rules, task.settings)
    return replace(draft, window=window, ignores_budget=True)
