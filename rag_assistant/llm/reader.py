"""Take the text of an answer from the body of a response, streamed or whole."""

from __future__ import annotations

import json
from typing import Any

import orjson

from rag_assistant.llm.failures import CHECK_ADDRESS, reason_given
from rag_assistant.llm.refusals import context_too_long, is_web_page
from rag_assistant.llm.sse import EventStreamDecoder
from rag_assistant.llm.tool_calls import ToolCallCollector
from rag_assistant.records.errors import TEXT_SAVED, AnswerInterrupted, AnswerTooLong, ModelError, ModelFailed
from rag_assistant.records.validation import storable

# Enough to tell what a body is.
MAX_START_BYTES = 1000
# Twice what the models of today write at most (128,000 tokens); whoever writes more does not end.
MAX_ANSWER_CHARS = 1_000_000
# Under these names endpoints send what a model thinks before it answers.
REASONING = ("reasoning_content", "reasoning")


class AnswerReader:
    """Takes the body of an answer, as an event stream or whole, and keeps what is not text."""

    def __init__(self, api_key: str | None = None) -> None:
        self._api_key = api_key
        self._events = EventStreamDecoder()
        self._body = bytearray()
        self._failure: ModelError | None = None
        self.shown = False
        self.done = False
        self._thought_chars = 0
        self._length = 0
        self.finish_reason: str | None = None
        self.usage: dict[str, Any] | None = None
        self.tool_calls = ToolCallCollector()

    @property
    def thought(self) -> bool:
        """Whether the model thought before it answered."""
        return self._thought_chars > 0

    @property
    def complete(self) -> bool:
        """Whether the answer came to its end."""
        return self.done or self.finish_reason is not None

    def feed(self, piece: bytes) -> str:
        """Return the text in a piece of an event stream.

        Raises ModelFailed or ContextTooLong for an error among the events; the text before it is returned first.
        """
        if self._failure is not None:
            self.check()
        text = ""
        try:
            for data in self._events.feed(piece):
                text += self._text_of(data)
        except ModelError as error:
            self._failure = error
        if text:
            self.shown = True
        else:
            self.check()
        return text

    def check(self) -> None:
        """Raise the error that stood behind the last text, if one did; it is not held any longer."""
        failure, self._failure = self._failure, None
        try:
            if failure is not None:
                raise failure
        finally:
            del failure

    def feed_whole(self, piece: bytes) -> None:
        """Collect the body of an endpoint that does not stream."""
        self._body += piece

    def whole_answer(self) -> str:
        """Return the text of a collected body. Raises ModelFailed if it is no answer."""
        if is_web_page(self._body[:MAX_START_BYTES].decode(errors="replace")):
            raise ModelFailed(f"A web page came instead of an answer. {CHECK_ADDRESS}")
        return self._text_of(bytes(self._body))

    def _text_of(self, data: bytes) -> str:
        if data == b"[DONE]":
            self.done = True
            return ""
        chunk = _parsed(data)
        if not isinstance(chunk, dict):
            raise _no_answer(data)
        if chunk.get("error"):
            raise context_too_long(chunk) or ModelFailed(
                f"The model reported an error: {reason_given(chunk, self._api_key)}"
            )
        if isinstance(usage := chunk.get("usage"), dict):
            self.usage = usage
        choices = chunk.get("choices") or [{}]
        choice = choices[0] if isinstance(choices, list) else None
        if not isinstance(choice, dict):
            raise _no_answer(data)
        if isinstance(reason := choice.get("finish_reason"), str):
            self.finish_reason = reason
        delta = choice.get("delta") or choice.get("message") or {}
        if not isinstance(delta, dict):
            raise _no_answer(data)
        content = delta.get("content")
        if len(delta) > 1 or not isinstance(content, str):
            content = self._take_all(delta)
        self._length += len(content)
        if self._length > MAX_ANSWER_CHARS:
            raise AnswerInterrupted(f"The answer was cut off after {MAX_ANSWER_CHARS:,} characters.{TEXT_SAVED}")
        return storable(content)

    def _take_all(self, delta: dict[str, Any]) -> str:
        """Take what may stand beside text, such as a tool call, and return the text. Raises AnswerTooLong."""
        if delta.get("tool_calls"):
            self.tool_calls.feed(delta["tool_calls"])
        self._thought_chars += sum(len(str(delta[name])) for name in REASONING if delta.get(name))
        if self._thought_chars > MAX_ANSWER_CHARS:
            raise AnswerTooLong(f"The model thought for more than {MAX_ANSWER_CHARS:,} characters, so it was stopped.")
        return _text_in(delta.get("content"))


def _no_answer(data: bytes) -> ModelFailed:
    return ModelFailed(f"The model sent something that is not an answer: {data[:80]!r}.")


def _parsed(data: bytes) -> Any:
    """Return the JSON value; the strict parser refuses half a pair of characters, which some providers send.

    Raises ModelFailed.
    """
    try:
        return orjson.loads(data)
    except ValueError:
        try:
            return json.loads(data)
        except (ValueError, RecursionError) as error:
            raise ModelFailed(f"The model sent something that is not JSON: {data[:80]!r}.") from error


def _text_in(content: Any) -> str:
    """Return the text of a content, which may come as a list of parts."""
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else ()
    texts = (part.get("text") for part in parts if isinstance(part, dict))
    return "".join(text for text in texts if isinstance(text, str))
