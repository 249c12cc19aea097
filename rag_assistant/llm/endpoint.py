"""The endpoint that answers questions, with its model and limits."""

from datetime import datetime

from msgspec import Struct

from rag_assistant.records import QUOTES

GUESSED_LIMIT = (
    "Since {at} UTC the limit is a guess, {n} tokens: of {n1} tokens of a request, {n2} were read. Test the connection "
    "to forget it."
)


class Guess(Struct, frozen=True):
    """A context limit guessed from low counts, with the last request that was cut: tokens sent and read, and when.

    ``is_tried``: it is not applied, to see whether a longer request is read whole.
    """

    limit: int
    sent: int
    read: int
    at: datetime
    is_tried: bool = False

    @property
    def sentence(self) -> str:
        """What is guessed, for people."""
        return GUESSED_LIMIT.format(
            n=f"{self.limit:,}", n1=f"{self.sent:,}", n2=f"{self.read:,}", at=f"{self.at:%Y-%m-%d %H:%M}"
        )


class Endpoint(Struct, frozen=True):
    """An OpenAI-compatible endpoint. ``model`` None: the first it lists; ``context_tokens`` None: unknown.

    ``local``: the model of ``local_model``, in a supervised process. ``quotes``: there is no model.
    ``guess``: what is guessed about its context.
    """

    base_url: str
    api_key: str | None
    model: str | None
    context_tokens: int | None = None
    local: bool = False
    quotes: bool = False
    takes_tools: bool = True
    guess: Guess | None = None

    @property
    def key(self) -> tuple[str, str | None]:
        """The key under which what was learned of its model is stored."""
        return self.base_url, self.model


# Answers while no model is connected: sentences of the documents.
QUOTES_ENDPOINT = Endpoint("", None, QUOTES, quotes=True, takes_tools=False)
