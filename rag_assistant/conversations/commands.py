"""Commands typed in place of questions: /history, /clear, /compact and so on, the same everywhere."""

from collections.abc import Callable

from msgspec import Struct
from msgspec.structs import asdict

from rag_assistant.conversations.actions import HistoryActions
from rag_assistant.conversations.summary_lines import EXTRACT
from rag_assistant.history.words import REASONS, span_in_words, turns_in_words
from rag_assistant.records import MAX_NOTE_CHARS
from rag_assistant.records.errors import InvalidRequest, UnknownCommand
from rag_assistant.records.validation import visible

REMEMBER = "/remember"
NOTED = "Noted. It is sent with questions about it."
# The effect and message of /undo, by the change that it undoes.
UNDOES = {
    "clear": "bring back the turns from before you started over",
    "reset": "bring back the turns from before you started over",
    "compact": "remove the summary",
    "edit summary": "restore the summary as it was before the edit",
    "pin": "undo the last pin change",
    "exclude": "undo the last exclusion change",
}
UNDONE = {
    "clear": "The model sees what it saw before you started over.",
    "reset": "The model sees what it saw before you started over.",
    "compact": "Summary removed. The model sees the original turns again.",
    "edit summary": "The summary is back to what it was before the edit.",
    "pin": "Pin change undone.",
    "exclude": "Exclusion change undone.",
}


class Command(Struct, frozen=True):
    """A command, with its description."""

    name: str
    does: str
    run: Callable[[HistoryActions, int], str]


class CommandResult(Struct, frozen=True):
    """The result of a command, as text; ``fold``: earlier turns may be hidden."""

    command: str
    text: str
    fold: bool = False


def is_command(text: str) -> bool:
    """Return whether a text is a command: a slash and a word, alone or with more after a known word."""
    words = text.split()
    if not words or not words[0].startswith("/") or not words[0][1:].replace("-", "").isalpha():
        return False
    return len(words) == 1 or words[0].lower() in COMMANDS


def run_command(text: str, actions: HistoryActions, conversation_id: int) -> CommandResult:
    """Run a command in a conversation, and return its result.

    Raises UnknownCommand, and what the action raises: NothingToUndo, NothingToSummarise, ConversationBusy and so on.
    """
    name, _, rest = text.strip().partition(" ")
    name, note = name.lower(), rest.strip()
    if name == REMEMBER:
        if not 0 < len(note) <= MAX_NOTE_CHARS:
            raise InvalidRequest(f"{name} takes a text of 1 to {MAX_NOTE_CHARS} characters; it got {len(note)}.")
        try:
            actions.notes.add(visible(note))
        except ValueError as error:
            raise InvalidRequest(f"{name} needs visible text.") from error
        return CommandResult(name, NOTED)
    command = COMMANDS.get(name)
    if command is not None and rest:
        raise UnknownCommand(f'{name} takes no arguments; it got "{rest}".')
    if command is None:
        raise UnknownCommand(f'Unknown command "{text.strip()}". Available: {", ".join(COMMANDS)}.')
    return CommandResult(name, command.run(actions, conversation_id), fold=name == "/clear")


def _history(actions: HistoryActions, conversation_id: int) -> str:
    view = actions.view(conversation_id)
    tokens = view.tokens
    takes = f" of {tokens['limit']:,}" if tokens["limit"] else ""
    with_summary = " + summary" if tokens["summary"] else ""
    lines = [
        f"{view.conversation.turns} {'turn' if view.conversation.turns == 1 else 'turns'}.",
        f"Next question: {view.sentence}{with_summary}, about {tokens['total']:,} tokens{takes} without the question.",
    ]
    runs = [asdict(run) for run in view.left_out]
    kept_turns = view.fitted.receipt.kept_turns
    lines += [f"- {turns_in_words(run, kept_turns, runs)}: {REASONS[run['reason']]}" for run in runs]
    summary = view.conversation.summary
    if summary is not None:
        lines.append(f"Summarised: {span_in_words(summary.first_turn, summary.last_turn)}.")
    if view.can_undo is not None:
        lines.append(f"/undo will {UNDOES[view.can_undo]}.")
    return "\n".join(lines)


def _clear(actions: HistoryActions, conversation_id: int) -> str:
    actions.history.move_context_start(conversation_id, "clear")
    return "The model no longer sees anything said so far. Every turn is still saved. Type /undo to bring them back."


def _compact(actions: HistoryActions, conversation_id: int) -> str:
    conversation, note = actions.compact(conversation_id)
    summary = conversation.summary
    if summary is None:
        raise RuntimeError("A compaction leaves a summary.")
    turns = span_in_words(summary.first_turn, summary.last_turn)
    how = f" {note}" if summary.written_by == EXTRACT else ""
    return f"The model now sees a summary of {turns}. Type /undo to remove it.{how}\n\n{summary.text}"


def _reset(actions: HistoryActions, conversation_id: int) -> str:
    actions.history.move_context_start(conversation_id, "reset")
    return (
        "The model starts over, and this conversation has the default settings of its memory again. "
        "Every turn is still saved. Type /undo to bring everything back."
    )


def commands_in_words() -> str:
    """Return the commands as a list."""
    return "\n".join(f"- {command.name}: {command.does}" for command in COMMANDS.values())


COMMANDS = {
    command.name: command
    for command in (
        Command("/history", "Show what is saved and what the model sees of it.", _history),
        Command("/clear-history", "Hide everything so far from the model. You can undo this.", _clear),
        Command("/clear", "Same as /clear-history, and collapses the transcript.", _clear),
        Command("/compact", "Send a summary in place of the older turns.", _compact),
        Command("/reset", "Start over with default settings.", _reset),
        Command("/undo", "Undo the last change.", lambda actions, one: UNDONE[actions.history.undo(one)[1]]),
        Command(REMEMBER, "Keep a note: /remember, then the text.", _history),
        Command("/help", "Show this list.", lambda _actions, _conversation_id: commands_in_words()),
    )
}
