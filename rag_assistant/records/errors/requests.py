"""Invalid requests and exceeded limits, refused before anything is done."""

from math import ceil

from rag_assistant.records.errors.base import AssistantError, Busy, NotFound


class InvalidRequest(AssistantError):
    """The request is well-formed, but a value in it is invalid; ``param`` names the field, where it is one."""


class MalformedBody(AssistantError):
    """The body could not be read at all."""


class UnsupportedContentType(AssistantError):
    """This route does not accept a body of this type."""


class BodyTooLarge(AssistantError):
    """The body is larger than this route accepts."""


class RequestRefused(AssistantError):
    """The request came from where none are accepted: another site's page or an unknown host name."""


class ServedByWebs(NotFound):
    sentence = "This process is a worker: it serves only /healthz, /readyz and /metrics."


class UnknownCommand(AssistantError):
    """The text looks like a command, but there is no such command."""


class IdempotencyKeyReused(AssistantError):
    sentence = 'The Idempotency-Key "{key}" was already used with another request. Use a new key for a new question.'


class Overloaded(Busy):
    sentence = (
        "The server is answering {limit} questions, the most it can at once. Nothing was stored; try again in a few "
        "seconds."
    )


class ServerEnding(Busy):
    sentence = "The server is stopping. Nothing was stored; try again in a few seconds."


class UnderMaintenance(Busy):
    sentence = (
        "The server is under maintenance: you can read, but not ask or change documents. Nothing was stored; try again "
        "later."
    )
    retry_after_seconds = 300


class TooManyFetches(Busy):
    sentence = "The server is fetching {limit} pages, the most it fetches at once. Try again in a few seconds."


class ImportsBusy(Busy):
    sentence = "Another import is being read. Nothing was stored; try again in a few seconds."


class PasswordsBusy(Busy):
    sentence = "Too many people are signing in right now. Try again in a few seconds."


class TooManyAttempts(AssistantError):
    sentence = "Too many attempts. Try again in {whole_seconds} seconds."


class LimitReached(AssistantError):
    """One of the person's limits is reached."""

    def __init__(self, what: str, retry_after_seconds: float) -> None:
        sentence = f"{what}. Try again in {_in_words(retry_after_seconds)}."
        super().__init__(sentence, retry_after_seconds=retry_after_seconds)


class SharedLimitReached(LimitReached):
    """A limit for everybody together is reached."""


class StorageLimitReached(BodyTooLarge):
    sentence = "The file has {size} MB, and the library's owner has a limit of {limit} MB. Delete some files first."


def _in_words(seconds: float) -> str:
    """Return a duration in words, rounded up."""
    for size, name in ((86_400, "days"), (3600, "hours"), (60, "minutes")):
        if seconds > 2 * size:
            return f"{ceil(seconds / size)} {name}"
    return f"{max(2, round(seconds))} seconds"
