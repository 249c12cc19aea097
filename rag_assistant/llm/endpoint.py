"""The endpoint that answers questions, with its model and limits."""

from msgspec import Struct

from rag_assistant.records import QUOTES


class Endpoint(Struct, frozen=True):
    """An OpenAI-compatible endpoint. ``model`` None: the first it lists; ``context_tokens`` None: unknown.

    ``local``: the model of ``local_model``, in a supervised process. ``quotes``: there is no model.
    ``guessed``: its context is a guess.
    """

    base_url: str
    api_key: str | None
    model: str | None
    context_tokens: int | None = None
    local: bool = False
    quotes: bool = False
    takes_tools: bool = True
    guessed: bool = False

    @property
    def key(self) -> tuple[str, str | None]:
        """The key under which what was learned of its model is stored."""
        return self.base_url, self.model


# Answers while no model is connected: sentences of the documents.
QUOTES_ENDPOINT = Endpoint("", None, QUOTES, quotes=True, takes_tools=False)
