"""Commands that are typed where questions are typed: /history, /clear, /compact and so on, the same in every way in."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass

from rag_assistant.conversations.actions import HistoryActions
from rag_assistant.errors import UnknownCommand
from rag_assistant.presenters.history import REASONS, turns_in_words

UNDONE = {
    "clear": "The model sees again what it saw before it was cleared.",
    "reset": "The model sees again what it saw before it was reset.",
    "compact": "The summary is gone; the model sees again the turns that it saw before.",
    "edit summary": "The summary reads as it did before it was edited.",
    "pin": "The last pin was taken back.",
    "exclude": "The last exclusion was taken back.",
}


@dataclass(frozen=True, slots=True)
class Command:
    """A command, with what it does in a sentence."""

    name: str
    does: str
    run: Callable[[HistoryActions, int], str]


@dataclass(frozen=True, slots=True)
class CommandResult:
    """What a command did, as text; ``fold``: what was said so far may be put out of sight."""

    command: str
    text: str
    fold: bool = False


def is_command(text: str) -> bool:
    """Tell whether a text is meant as a command: a slash and a word, alone or with more behind a word that we know."""
    words = text.split()
    if not words or not words[0].startswith("/") or not words[0][1:].replace("-", "").isalpha():
        return False
    return len(words) == 1 or words[0].lower() in COMMANDS


def run_command(text: str, actions: HistoryActions, conversation_id: int) -> CommandResult:
    """Carry out a command in a conversation, and return what it did.

    Raises UnknownCommand, and what the action raises: NothingToUndo, NothingToSummarise, ConversationBusy and so on.
    """
    name, _, rest = text.strip().lower().partition(" ")
    command = COMMANDS.get(name)
    if command is not None and rest:
        raise UnknownCommand(f'{name} takes nothing behind it; here stands "{rest}".')
    if command is None:
        raise UnknownCommand(f'There is no command "{text.strip()}". There are: {", ".join(COMMANDS)}.')
    return CommandResult(name, command.run(actions, conversation_id), fold=name == "/clear")


def _history(actions: HistoryActions, conversation_id: int) -> str:
    view = actions.view(conversation_id)
    counts = actions.counts(conversation_id)
    roles = ", ".join(f"{count} {role}" for role, count in sorted(counts.items()))
    tokens = view.as_dict()["tokens"]
    takes = f" of {tokens['limit']:,}" if tokens["limit"] else ""
    lines = [
        f"{_count(view.conversation.turns, 'turn')}, {_count(sum(counts.values()), 'message')} ({roles or 'none'}).",
        f"If you asked now, the model would see this: {view.sentence}; about {tokens['total']:,} tokens{takes} without "
        "the question.",
    ]
    runs = [asdict(run) for run in view.left_out]
    kept = view.fitted.receipt.kept_turns
    lines += [f"- {turns_in_words(run, kept, runs)}: {REASONS[run['reason']]}" for run in runs]
    summary = view.conversation.summary
    if summary is not None:
        lines.append(f"A summary stands for turns {summary.first_turn} to {summary.last_turn}.")
    if view.can_undo is not None:
        lines.append(f"/undo takes back: {view.can_undo}.")
    return "\n".join(lines)


def _count(number: int, of: str) -> str:
    return f"{number} {of}" if number == 1 else f"{number} {of}s"


def _clear(actions: HistoryActions, conversation_id: int) -> str:
    actions.clear(conversation_id)
    return "The model sees nothing of what was said so far. Every turn is still kept; /undo brings the view back."


def _compact(actions: HistoryActions, conversation_id: int) -> str:
    summary = actions.compact(conversation_id).summary
    if summary is None:
        raise RuntimeError("A compaction leaves a summary.")
    return (
        f"Turns {summary.first_turn} to {summary.last_turn} are summarised for the model; /undo brings them back.\n\n"
        f"{summary.text}"
    )


def _reset(actions: HistoryActions, conversation_id: int) -> str:
    actions.reset(conversation_id)
    return (
        "The model begins afresh, and the settings decide again about window, strategy and overflow. Every turn is "
        "still kept; /undo brings it all back."
    )


def _undo(actions: HistoryActions, conversation_id: int) -> str:
    _, kind = actions.undo(conversation_id)
    return UNDONE[kind]


def _help(_actions: HistoryActions, _conversation_id: int) -> str:
    return "\n".join(f"- {command.name}: {command.does}" for command in COMMANDS.values())


COMMANDS = {
    command.name: command
    for command in (
        Command("/history", "show what is kept, what the model would see, and what it would not.", _history),
        Command("/clear-history", "let the model see nothing of what was said so far.", _clear),
        Command("/clear", "the same, and put what was said so far out of sight.", _clear),
        Command("/compact", "let the model summarise the older turns and send the summary in their place.", _compact),
        Command("/reset", "clear, and give up what was set for this conversation alone.", _reset),
        Command("/undo", "take the last of these changes back.", _undo),
        Command("/help", "show this list.", _help),
    )
}
