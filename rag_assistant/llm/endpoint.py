"""The endpoint that answers questions, with its model and limits."""

import re
from datetime import datetime

from msgspec import Struct

from rag_assistant.records import QUOTES

GUESSED_LIMIT = (
    "Since {at} UTC the limit is a guess, {n} tokens: of {n1} tokens of a request, {n2} were read. Test the connection "
    "to forget it."
)
NAMED_LIMIT = (
    "On {at} UTC the endpoint refused a request and named a limit of {n} tokens. Test the connection to forget it."
)
# Of a model's name: llama3.2:3b, qwen2.5-1.5b, SmolLM2-135M-Instruct; nothing of mixtral-8x7b.
SIZE = re.compile(r"(?<![a-z0-9.])(\d{1,4}(?:\.\d{1,3})?)([bm])(?![a-z0-9])", re.IGNORECASE)
MAX_SMALL_BILLIONS = 4.5  # A model that is called 4B may have more.


class Guess(Struct, frozen=True):
    """A context limit guessed from low counts, with the last request that was cut: tokens sent and read, and when.

    ``is_tried``: it is not applied, to see whether a longer request is read whole. ``is_named``: the endpoint named it
    as it refused the request.
    """

    limit: int
    sent: int
    read: int
    at: datetime
    is_tried: bool = False
    is_named: bool = False

    @property
    def sentence(self) -> str:
        """What is guessed, or was named, for people."""
        text = NAMED_LIMIT if self.is_named else GUESSED_LIMIT
        return text.format(
            n=f"{self.limit:,}", n1=f"{self.sent:,}", n2=f"{self.read:,}", at=f"{self.at:%Y-%m-%d %H:%M}"
        )


class Endpoint(Struct, frozen=True):
    """An OpenAI-compatible endpoint. ``model`` None: the first it lists; ``context_tokens`` None: unknown.

    ``local``: the model of ``local_model``, in a supervised process. ``quotes``: there is no model.
    ``guess``: what is guessed about its context. ``billions``: how many parameters its file has.
    """

    base_url: str
    api_key: str | None
    model: str | None
    context_tokens: int | None = None
    local: bool = False
    quotes: bool = False
    takes_tools: bool = True
    guess: Guess | None = None
    billions: float | None = None

    @property
    def is_small(self) -> bool:
        """Whether its file, or else its name, says that the model has few parameters."""
        named = [float(n) / (1000 if unit in "mM" else 1) for n, unit in SIZE.findall(self.model or "")]
        sizes = named if self.billions is None else [self.billions]
        return bool(sizes) and max(sizes) <= MAX_SMALL_BILLIONS

    @property
    def key(self) -> tuple[str, str | None]:
        """The key under which what was learned of its model is stored."""
        return self.base_url, self.model


# Answers while no model is connected: sentences of the documents.
QUOTES_ENDPOINT = Endpoint("", None, QUOTES, quotes=True, takes_tools=False)
