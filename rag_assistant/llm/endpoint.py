"""Where questions are answered: an endpoint with its name and its limits."""

from msgspec import Struct

from rag_assistant.records import QUOTES


class Endpoint(Struct, frozen=True):
    """An OpenAI-compatible endpoint. ``model`` None: the first that it lists; ``context_tokens`` None: not known.

    ``local``: it is the model of ``local_model``, in a process of ours. ``quotes``: there is no model.
    """

    base_url: str
    api_key: str | None
    model: str | None
    context_tokens: int | None = None
    local: bool = False
    quotes: bool = False
    takes_tools: bool = True

    @property
    def key(self) -> tuple[str, str | None]:
        """By what is kept what was learnt of its model."""
        return self.base_url, self.model


# What answers where no model is connected: sentences of the documents.
QUOTES_ENDPOINT = Endpoint("", None, QUOTES, quotes=True, takes_tools=False)
