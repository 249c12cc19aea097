"""Why a model did not answer, and what ended an answer."""

from rag_assistant.records.errors.base import AssistantError, Conflict, NotFound

# How a message about a missing answer ends.
QUESTION_KEPT = " Your question was saved; try again."
TEXT_SAVED = " The text so far was saved."


def cause_alone(message: str) -> str:
    """Return why a model did not answer, without the note on what was saved."""
    return message.removesuffix(QUESTION_KEPT).removesuffix(TEXT_SAVED)


class ModelError(AssistantError):
    """The model did not answer. Its question is kept; the endpoint may ask us to wait for ``retry_after_seconds``."""


class ModelNotFound(NotFound):
    sentence = 'There is no model "{name}". Available: {available}.'
    param = "model"


class NoEndpoint(Conflict):
    sentence = "No endpoint is set. Set openai_base_url, openai_api_key or both first."


class ModelUnreachable(ModelError):
    """The endpoint cannot be reached."""


class ModelRefused(ModelError):
    """The endpoint refused the request: the key, the model's name or the request itself."""


class ContextTooLong(ModelRefused):
    """The request is longer than the model accepts; the figures are the endpoint's, ``None`` where it gives none."""

    def __init__(self, message: str, limit: int | None = None, prompt_tokens: int | None = None) -> None:
        super().__init__(message)
        self.limit = limit
        self.prompt_tokens = prompt_tokens


class ToolsRefused(ModelRefused):
    """The endpoint does not support tools."""


class ModelBusy(ModelError):
    """The endpoint is busy and asked to wait."""


class ModelFailed(ModelError):
    """The endpoint had an error, or sent something that is not an answer."""


class AnswerTooLong(ModelFailed):
    """The endpoint sent more than any answer may have, so it was stopped; it is not retried automatically."""


class ModelTimedOut(ModelError):
    """The endpoint was silent for too long."""


class AnswerInterrupted(ModelError):
    """The stream broke off in the middle of the answer."""


class AnswerTakenOver(AssistantError):
    sentence = "The server was unresponsive for too long, so the answer was ended. The text so far was saved."


class AnswerStopped(AssistantError):
    """A person stopped the answer."""


class ToolFailed(AssistantError):
    """A tool could not do what the model asked for; the message goes to the model."""


class ModelFileMissing(AssistantError):
    """A model's file is not installed, or it is not the one that we know."""
