"""Everything that is raised on purpose, in one tree: one class for each decision that a caller makes.

``str(error)`` is a full sentence that is safe to show: what was wrong, with the value, and what is allowed or what to
do. The cause is chained, for the log only. Which HTTP status a class becomes is decided in ``web/errors.py``.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

# The end of a sentence that says why a model did not answer.
QUESTION_KEPT = " Your question was saved; try again."
TEXT_SAVED = " The text so far was saved."


class AssistantError(Exception):
    """The root of the tree."""


class InvalidRequest(AssistantError):
    """The request's form is right but a value in it is not; ``param`` names the field, where it is one."""

    def __init__(self, message: str, param: str | None = None) -> None:
        super().__init__(message)
        self.param = param


class MalformedBody(AssistantError):
    """The body could not be read at all."""


class UnsupportedContentType(AssistantError):
    """The body is of a kind that this route does not take."""


class BodyTooLarge(AssistantError):
    """The body is larger than this route takes."""


class RequestRefused(AssistantError):
    """The request came from a place that may not ask: a foreign page or a foreign host name."""


class ConversationNotFound(AssistantError):
    """There is no such conversation."""

    def __init__(self, conversation_id: int) -> None:
        super().__init__(f"There is no conversation {conversation_id}.")


class ConversationDeleted(ConversationNotFound):
    """The conversation is in the trash."""

    def __init__(self, conversation_id: int) -> None:
        AssistantError.__init__(self, f"Conversation {conversation_id} is in the trash. Restore it to go on with it.")
        self.details = {"conversation_id": conversation_id}


class TurnNotFound(AssistantError):
    """There is no such turn."""

    def __init__(self, turn_id: int) -> None:
        super().__init__(f"There is no turn {turn_id}.")


class ModelNotFound(AssistantError):
    """There is no model of this name to ask for."""

    def __init__(self, name: str, known: Iterable[str]) -> None:
        super().__init__(f'There is no model "{name}". There are: {", ".join(known)}.')
        self.param = "model"


class ResponseNotFound(AssistantError):
    """There is no stored response of this id."""

    def __init__(self, name: str) -> None:
        super().__init__(f'There is no stored response "{name}". One with turns sent along, or store false, is not.')


class DocumentNotFound(AssistantError):
    """There is no such document."""

    def __init__(self, document_id: int) -> None:
        super().__init__(f"There is no document {document_id}; it may have been deleted.")


class FileMissing(AssistantError):
    """The file of a document is not in the folder of uploads any more; what was read of it is."""

    def __init__(self, document_id: int) -> None:
        super().__init__(
            f"The file of document {document_id} is gone from the data folder. "
            "What was read of it is still found; add the file again to have it back."
        )


class ReceiptNotFound(AssistantError):
    """The turn has no receipt: nothing was sent to a model yet."""

    def __init__(self, turn_id: int) -> None:
        super().__init__(f"Turn {turn_id} has no receipt: nothing was sent to a model for it, or it was erased.")


class ConversationBusy(AssistantError):
    """The conversation answers another question at the moment."""

    def __init__(self, conversation_id: int) -> None:
        super().__init__(
            f"Conversation {conversation_id} is still answering its last question. Wait for the answer, or stop it."
        )


class TooManyPinned(AssistantError):
    """As many conversations are pinned as can stand at the top of the list."""

    def __init__(self, max_pinned: int) -> None:
        super().__init__(f"{max_pinned} conversations are pinned, and no more can be. Unpin one first.")


class NotInTrash(AssistantError):
    """The conversation was restored meanwhile: it is not erased by a page that does not know so."""

    def __init__(self, conversation_id: int) -> None:
        super().__init__(f"Conversation {conversation_id} is no longer in the trash. Delete it first.")


class TurnErased(AssistantError):
    """The turn was erased: nothing can be done with it any more."""

    def __init__(self, number: int) -> None:
        super().__init__(f"Turn {number} was erased. Only its place in the conversation is left.")


class TurnNotRetryable(AssistantError):
    """The turn cannot be asked again as it is."""


class TurnNotRegenerable(AssistantError):
    """The turn's question cannot be answered anew as it is."""


class TurnNotRatable(AssistantError):
    """The turn has no answer that could be rated."""

    def __init__(self, number: int) -> None:
        super().__init__(f"Turn {number} can't be rated: it has no answer yet, or it is about a confirmation.")


class VersionNotFound(AssistantError):
    """The turn has no such answer."""

    def __init__(self, turn_id: int, version: int, versions: int) -> None:
        super().__init__(f"Turn {turn_id} has no answer {version}; it has {versions}.")


class VersionFixed(AssistantError):
    """Another of the turn's answers cannot take the present one's place."""


class NothingWaits(AssistantError):
    """The turn has no question that waits for a yes or no."""

    def __init__(self, turn_id: int) -> None:
        super().__init__(f"Turn {turn_id} asks for no confirmation, or was answered before. Nothing was done.")


class NothingToUndo(AssistantError):
    """No change of the conversation's history is left that could be undone."""

    def __init__(self, conversation_id: int) -> None:
        super().__init__(f"There is nothing to undo in conversation {conversation_id}.")


class NothingToSummarise(AssistantError):
    """There are no turns, or too few, that a summary could stand for."""


class HistoryChanged(AssistantError):
    """The model's view was changed while a summary was written; the summary was thrown away."""

    def __init__(self) -> None:
        super().__init__("What the model sees was changed while the summary was written. Nothing was summarised.")


class TurnSummarised(AssistantError):
    """The turn stands in the summary, so that it cannot be left out alone."""

    def __init__(self, number: int) -> None:
        super().__init__(
            f"Turn {number} is part of the summary that the model sees. Undo the summary, or edit it, to leave it out."
        )


class NoSummary(AssistantError):
    """The conversation has no summary at present."""

    def __init__(self, conversation_id: int) -> None:
        super().__init__(f"Conversation {conversation_id} has no summary at present.")


class UnknownCommand(AssistantError):
    """The text begins like a command but is none."""


class OverflowDecisionNeeded(AssistantError):
    """The request would leave turns out, and a person wants to decide what happens then.

    ``details`` holds the ``options``, each with what it does, and the ``history`` figures of the request.
    """

    def __init__(self, message: str, details: dict[str, Any]) -> None:
        super().__init__(message)
        self.details = details


class IdempotencyKeyReused(AssistantError):
    """The key was used before, for another question."""

    def __init__(self, key: str) -> None:
        super().__init__(
            f'The Idempotency-Key "{key}" was used before with another request. Use a new key for a new question.'
        )


class Overloaded(AssistantError):
    """More answers are running than this server carries; come back after ``retry_after_seconds``."""

    def __init__(self, limit: int, retry_after_seconds: int = 5) -> None:
        super().__init__(
            f"The server is answering {limit} questions, as many as it takes at once. "
            f"Nothing was stored; try again in {retry_after_seconds} seconds."
        )
        self.retry_after_seconds = retry_after_seconds


class StorageFailed(AssistantError):
    """The database did not take or give what was asked, for instance because the disk is full."""


class StorageDamaged(StorageFailed):
    """The database's file cannot be read any more: waiting does not help, a backup does."""


class BackupFailed(AssistantError):
    """A backup could not be written or restored; what was there before is as it was."""


class InvalidHistoryLimit(AssistantError, ValueError):
    """A limit of the history is not a whole number of 0 or more, and not ``None``."""

    def __init__(self, value: object, name: str = "max_history_turns") -> None:
        super().__init__(f"{name} is {value!r}; it must be a whole number, 0 or more, or null for no limit.")


class QuestionDoesNotFit(AssistantError):
    """System message and question alone are more than the model takes; ``tokens`` and ``budget`` are both figures."""

    def __init__(self, tokens: int, budget: int, system_tokens: int) -> None:
        blame = "Shorten the instructions in settings.json" if system_tokens > budget else "Ask a shorter question"
        super().__init__(
            f"The question with its instructions has about {tokens} tokens, {system_tokens} of them instructions; "
            f"{budget} are allowed. {blame}, or connect a model that takes more."
        )
        self.tokens = tokens
        self.budget = budget
        self.system_tokens = system_tokens


class SummaryRejected(AssistantError):
    """A summary that cannot stand for the turns it was made of."""


class SettingsError(AssistantError):
    """A setting is wrong; the message names where it stands, its value and what is allowed."""


class UnsupportedDocument(AssistantError):
    """The file is of a kind from which no text can be read here."""


class ExtractionFailed(AssistantError):
    """The file's text could not be read; the message says what was found."""


class SourceNotFound(AssistantError):
    """An answer has no source of this number."""

    def __init__(self, turn: int, n: int) -> None:
        super().__init__(f"Turn {turn} has no source {n}.")


class PageNotDrawn(AssistantError):
    """There is no picture of this page; the message says why, and the text is there."""


class ExtractionCancelled(AssistantError):
    """Reading the file was given up because its text is no longer wanted."""

    def __init__(self) -> None:
        super().__init__("Reading this file was given up: it was deleted, or the server is closing.")


class ModelFileMissing(AssistantError):
    """A model's file is not installed, or it is not the one that we know."""


class DownloadFailed(AssistantError):
    """A file could not be fetched, or it is not the one that was meant."""


class SameContent(AssistantError):
    """A newer version of one document has the content of another one."""

    def __init__(self, document_id: int, replaces: int) -> None:
        super().__init__(
            f"Document {document_id} has this content already, so it cannot become document {replaces} as well. "
            f"Delete document {replaces} instead."
        )
        self.document_id = document_id


class LibraryNotFound(AssistantError):
    """There is no such library, or not for this person."""

    def __init__(self, library_id: int) -> None:
        super().__init__(f"There is no library {library_id}.")


class LibraryReadOnly(AssistantError):
    """A document may be read and not changed: its library is only shared to be read, or the token is for less."""

    def __init__(self, name: str) -> None:
        super().__init__(
            f'"{name}" may be read, but not changed: its library is somebody else\'s, or your token is for less.'
        )


class NotLibraryOwner(AssistantError):
    """A library is somebody else's, who alone says who may use it."""

    def __init__(self, name: str) -> None:
        super().__init__(f'The library "{name}" is somebody else\'s; only its owner can change or share it.')


class LibraryInUse(AssistantError):
    """A library cannot be deleted: it has documents, or it is a person's last one."""

    def __init__(self, name: str) -> None:
        super().__init__(f'The library "{name}" has documents, or it is your last one, so it cannot be deleted.')


class EmbedderFailed(AssistantError):
    """The embedding model could not be loaded or run."""


class RerankerFailed(AssistantError):
    """The reranking model gave no order."""


class IndexUnavailable(AssistantError):
    """The vector index does not answer; exact search does."""


class ModelError(AssistantError):
    """The model did not answer. Its question is kept and can be asked again.

    ``retry_after_seconds`` is how long the endpoint asked us to wait.
    """

    def __init__(self, message: str, retry_after_seconds: float | None = None) -> None:
        super().__init__(message)
        self.retry_after_seconds = retry_after_seconds


class NoEndpoint(AssistantError):
    """No endpoint is set that could be tested."""

    def __init__(self) -> None:
        super().__init__("No endpoint is set. Set openai_base_url, openai_api_key or both first.")


class ModelUnreachable(ModelError):
    """No connection to the endpoint."""


class ModelRefused(ModelError):
    """The endpoint refused the request: the key, the model's name or the request itself."""


class ContextTooLong(ModelRefused):
    """The request is longer than the model takes; the figures are the endpoint's, ``None`` where it gives none."""

    def __init__(self, message: str, limit: int | None = None, prompt_tokens: int | None = None) -> None:
        super().__init__(message)
        self.limit = limit
        self.prompt_tokens = prompt_tokens


class ToolsRefused(ModelRefused):
    """The endpoint takes no tools."""


class ToolFailed(AssistantError):
    """A tool could not do what the model asked for; the message goes to the model."""


class ModelBusy(ModelError):
    """The endpoint asked for patience."""


class ModelFailed(ModelError):
    """The endpoint had trouble of its own, or sent something that is not an answer."""


class ModelTimedOut(ModelError):
    """The endpoint was silent for longer than a deadline allows."""


class AnswerInterrupted(ModelError):
    """The stream broke off in the middle of the answer."""


class AnswerTakenOver(AssistantError):
    """This process was taken for dead while it answered, and another one has ended the turn."""

    def __init__(self) -> None:
        super().__init__("The server was not heard of for too long; the answer was ended with what is kept of it.")


class AnswerStopped(AssistantError):
    """A person stopped the answer."""


class NotSignedIn(AssistantError):
    """Nobody asks, or what they showed is over."""

    def __init__(self) -> None:
        super().__init__("Sign in first: open /login, or send an API token as Authorization: Bearer.")


class SignInFailed(AssistantError):
    """A name or a password is wrong; which of them is not said."""

    def __init__(self, message: str = "The name or the password is wrong.") -> None:
        super().__init__(message)


class TooManyAttempts(AssistantError):
    """Passwords are tried too quickly."""

    def __init__(self, retry_after_seconds: float) -> None:
        super().__init__(f"Too many attempts. Try again in {max(1, round(retry_after_seconds))} seconds.")
        self.retry_after_seconds = retry_after_seconds


class LimitReached(AssistantError):
    """Somebody takes more than one person's share."""

    def __init__(self, what: str, retry_after_seconds: float) -> None:
        super().__init__(f"{what}. Try again in {max(1, round(retry_after_seconds))} seconds.")
        self.retry_after_seconds = retry_after_seconds


class StorageLimitReached(BodyTooLarge):
    """The files of a person would take more room than theirs."""

    def __init__(self, size_mb: float, limit_mb: int) -> None:
        super().__init__(
            f"The file has {size_mb:.1f} MB, and then yours would have more than {limit_mb} MB together. "
            "Delete some first."
        )


class NotAllowed(AssistantError):
    """Somebody asks who may not do this; the message says what it takes."""


class AccountNotFound(AssistantError):
    """There is no such account."""

    def __init__(self, name: str) -> None:
        super().__init__(f'There is no account "{name}".')


class NameTaken(AssistantError):
    """Another account has this name."""

    def __init__(self, name: str) -> None:
        super().__init__(f'There is an account "{name}" already. Choose another name.')


class AccountsExist(AssistantError):
    """The first account was made already."""

    def __init__(self) -> None:
        super().__init__("There is an account already. Sign in.")


class LastAdmin(AssistantError):
    """Without this account nobody could manage the others."""

    def __init__(self) -> None:
        super().__init__("This is the last administrator who can sign in. Make somebody else one first.")


class StillOwns(AssistantError):
    """An account cannot be deleted while something belongs to it."""

    def __init__(self, name: str) -> None:
        super().__init__(f'Something was added to the account "{name}" meanwhile. Delete it again.')


class CredentialNotFound(AssistantError):
    """There is no such session or token, or not of this person."""

    def __init__(self, what: str, number: int) -> None:
        super().__init__(f"There is no {what} {number}.")


class LinkNotFound(AssistantError):
    """A link to a conversation was taken back, or never was one."""

    def __init__(self) -> None:
        super().__init__("There is nothing behind this link; it may have been taken back.")


class LinkOver(AssistantError):
    """A one-time link was used, is too old, or never was one."""

    def __init__(self) -> None:
        super().__init__("This link was used or is too old. Ask an administrator for a new one.")
