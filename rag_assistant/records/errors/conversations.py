"""Errors of conversations, turns and their history."""

from typing import Any

from rag_assistant.records.errors.base import AssistantError, Conflict, NotFound


class ConversationNotFound(NotFound):
    sentence = "There is no conversation {conversation_id}."


class ConversationDeleted(ConversationNotFound):
    sentence = "Conversation {conversation_id} is in the trash. Restore it to continue it."


class ConversationBusy(Conflict):
    sentence = "Conversation {conversation_id} is still answering its last question. Wait for the answer, or stop it."


class ProjectNotFound(NotFound):
    sentence = "There is no project {project_id}."


class NotProjectOwner(AssistantError):
    sentence = 'The project "{name}" belongs to somebody else, who has not let you do this.'


class ProjectExists(Conflict):
    sentence = 'There is already a project named "{name}". Choose another name.'


class NotInProject(Conflict):
    sentence = "Conversation {conversation_id} is not in project {project_id}. Move it, or leave the project out."


class TooManyPinned(Conflict):
    sentence = "{max_pinned} conversations are pinned, which is the limit. Unpin one first."


class NotInTrash(Conflict):
    sentence = "Conversation {conversation_id} is no longer in the trash. Delete it first."


class TurnNotFound(NotFound):
    sentence = "There is no turn {turn_id}."


class TurnErased(Conflict):
    sentence = "Turn {number} was erased. Only its place in the conversation is left."


class TurnNotRetryable(Conflict):
    """The turn cannot be retried in its current state."""


class TurnNotRegenerable(Conflict):
    """The turn's question cannot be answered again in its current state."""


class TurnNotRatable(Conflict):
    sentence = "Turn {number} can't be rated: it has no answer yet, or it is a confirmation."


class TurnSummarised(Conflict):
    sentence = "Turn {number} is part of the summary that the model sees. Undo the summary, or edit it, to exclude it."


class VersionNotFound(NotFound):
    sentence = "Turn {turn_id} has no answer {version}; it has {versions}."


class VersionFixed(Conflict):
    """The turn cannot be switched to another answer now."""


class ReceiptNotFound(NotFound):
    sentence = "Turn {turn_id} has no receipt: nothing was sent to a model for it, or it was erased."


class ResponseNotFound(NotFound):
    sentence = (
        'There is no stored response "{name}". Responses to requests that include earlier turns, or with store false, '
        "are not stored."
    )


class PictureNotFound(NotFound):
    sentence = "The question of turn {turn_id} has {count} pictures; there is no number {number}."


class SourceNotFound(NotFound):
    sentence = "Turn {turn} has no source {n}."


class NothingWaits(Conflict):
    sentence = "Turn {turn_id} does not ask for a confirmation, or was already answered. Nothing was done."


class NothingToUndo(Conflict):
    """No change of the conversation's history is left that could be undone, or a summary is being written."""


class NothingToSummarise(Conflict):
    """There are no turns to summarise, or too few."""


class NoSummary(NotFound):
    sentence = "Conversation {conversation_id} has no summary."


class SummaryRejected(AssistantError):
    """A summary cannot replace the turns it was made of."""


class HistoryChanged(Conflict):
    sentence = "What the model sees changed while the summary was being written. Nothing was summarised."


class NoteNotFound(NotFound):
    sentence = "There is no note {note_id}."


class TurnErasedMeanwhile(Conflict):
    sentence = "An earlier conversation or a note that was found for this question was deleted meanwhile. Ask again."


class OverflowDecisionNeeded(Conflict):
    """The request would leave turns out, and you must decide what happens to them.

    ``details`` holds the ``options``, each with what it does, and the ``history`` figures of the request.
    """

    details: dict[str, Any]


class InvalidHistoryLimit(AssistantError, ValueError):
    sentence = "{name} is {value}; it must be a whole number, 0 or more, or null for no limit."


class QuestionDoesNotFit(AssistantError):
    """The system message and the question alone exceed the model's limit; see ``tokens`` and ``budget``."""

    def __init__(self, tokens: int, budget: int, system_tokens: int) -> None:
        blame = "Shorten the instructions in settings.json" if system_tokens > budget else "Ask a shorter question"
        super().__init__(
            f"The question and its instructions have about {tokens} tokens, {system_tokens} of them instructions; "
            f"the limit is {budget}. {blame}, or connect a model with a larger context window."
        )
        self.tokens = tokens
        self.budget = budget
        self.system_tokens = system_tokens
