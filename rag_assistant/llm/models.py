"""The model that answers now: the endpoint of the settings, or the built-in one where none is set."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from rag_assistant.errors import AnswerStopped, ModelUnreachable
from rag_assistant.llm.builtin import BuiltinModel
from rag_assistant.llm.calls import ModelCall
from rag_assistant.llm.client import OPENAI_BASE_URL, ModelClient
from rag_assistant.llm.endpoint import Deadlines, Endpoint
from rag_assistant.records import Message, ModelReply
from rag_assistant.settings import Settings

OPENAI_DEFAULT_MODEL = "gpt-4o-mini"


class LanguageModels:
    """Chooses the endpoint for each question anew, so that a change of the settings counts from the next one on."""

    def __init__(self, settings: Callable[[], Settings], built_in: BuiltinModel) -> None:
        self._settings = settings
        self.built_in = built_in
        self.client = ModelClient(lambda: deadlines_of(settings()))

    def uses_built_in(self) -> bool:
        """Whether the built-in model answers: neither an endpoint nor a key is set."""
        settings = self._settings()
        return settings.openai_base_url is None and settings.openai_api_key is None

    def new_call(self) -> ModelCall:
        """Return a call that has not begun."""
        return ModelCall()

    def endpoint(self, call: ModelCall) -> Endpoint:
        """Return the endpoint with its model's name; waits for the built-in one. Raises a ModelError."""
        settings = self._settings()
        if self.uses_built_in():
            try:
                return self.built_in.endpoint(lambda: call.ended)
            except ModelUnreachable as error:
                if call.stopped:
                    raise AnswerStopped("The answer was stopped.") from error
                raise
        base_url = settings.openai_base_url or OPENAI_BASE_URL
        model = settings.openai_model or (OPENAI_DEFAULT_MODEL if base_url == OPENAI_BASE_URL else None)
        endpoint = Endpoint(base_url.rstrip("/"), settings.openai_api_key, model, settings.model_context_tokens)
        return self.client.named(endpoint, call)

    def stream(
        self,
        endpoint: Endpoint,
        messages: Sequence[Message],
        call: ModelCall,
        on_wait: Callable[[str], None],
        max_tokens: int | None,
        temperature: float | None,
    ) -> Iterator[ModelReply]:
        """Yield the answer; see ModelClient.stream."""
        return self.client.stream(
            endpoint, messages, call, max_tokens=max_tokens, temperature=temperature, on_wait=on_wait
        )


def deadlines_of(settings: Settings) -> Deadlines:
    """Return the deadlines that the settings set."""
    return Deadlines(
        connect=settings.connect_timeout_seconds,
        first_token=settings.first_token_timeout_seconds,
        token=settings.token_timeout_seconds,
        answer=settings.answer_timeout_seconds,
    )
