"""Reads the text of an answer from an endpoint's JSON, streamed or whole, about which nothing is certain."""

import json
import re
from itertools import chain
from typing import Any

from msgspec import Struct

from rag_assistant.llm.failures import CHECK_ADDRESS, is_web_page, reported_error
from rag_assistant.llm.prompt_counts import is_count, is_name, reported_usage
from rag_assistant.llm.tool_calls import ToolCallCollector, thoughts_in
from rag_assistant.records import ModelReply
from rag_assistant.records.errors import TEXT_SAVED, AnswerInterrupted, AnswerTooLong, ModelFailed
from rag_assistant.records.validation import storable

# As in chat templates; such tags later in an answer are part of it.
TAGS = {
    "<think>": "</think>", "<thinking>": "</thinking>", "<thought>": "</thought>", "<seed:think>": "</seed:think>",
    "[THINK]": "[/THINK]", "<|channel|>analysis<|message|>": "<|channel|>final<|message|>",
    "<|channel>thought": "<channel|>",
}  # fmt: skip
# What a template writes in front of an answer, and behind it.
STARTS = ("<|start|>assistant", "<|channel|>final<|message|>")
END = re.compile(r"<\|(?:im_end|end|return|call|eot_id|eom_id|endoftext|end_of_text)\|>\s{0,20}")
MAY_BEGIN_END = re.compile(r"<(?:\|[a-z_]{0,12}\|?)?\Z")
MAX_END_CHARS, MAX_ENDS = 40, 8
CLOSING = "</think>"
# Models whose template opens the tag in the prompt, so that they only write its end.
OPENED_IN_PROMPT = re.compile(r"\b(?:r1|qwq|reasoner)\b|thinking", re.I)


class ThoughtFilter:
    """Takes the text of an answer in pieces, and returns those that aren't reasoning.

    If it ``is_opened``, reasoning comes first, up to the closing tag; if that never comes, there was none.
    ``is_closed_only`` is set once a closing tag came without an opening one.
    """

    def __init__(self, is_opened: bool = False) -> None:
        self.is_opened = is_opened
        self.is_closed_only = False
        self.chars = 0
        self._closing: str | None = None
        self._held, self._recent, self._end = "", "", ""
        self._is_answer = self._has_parted = False

    def feed(self, text: str) -> str:
        """Return what is known to be part of the answer; possible reasoning or tags are held back."""
        if self._is_answer:
            self._recent = (self._recent + text)[-len(text) - len(CLOSING) :]
            self.is_closed_only = self.is_closed_only or CLOSING in self._recent
            return self._without_end(text)
        self._held += text
        while True:
            begun = self._held.lstrip()
            if self._closing is None and (tag := next(filter(begun.startswith, TAGS), None)):
                self._closing, self._held, self.is_opened = TAGS[tag], begun[len(tag) :], False
            elif self._closing is None and (start := next(filter(begun.startswith, STARTS), None)):
                self._held = begun[len(start) :]
                continue
            closing = self._closing or (CLOSING if self.is_opened else None)
            if closing is None:
                return "" if any(tag.startswith(begun) for tag in (*TAGS, *STARTS)) else self._begin_answer()
            end = self._held.find(closing, -len(text) - len(closing))
            if end < 0:
                if self._closing is not None:
                    self.chars += max(0, len(self._held) - len(closing))
                    self._held = self._held[-len(closing) :]
                return ""
            self.chars += end
            self.is_closed_only = self.is_closed_only or self.is_opened
            self._closing, self.is_opened, self._held = None, False, self._held[end + len(closing) :]
            self._has_parted = True

    def rest(self) -> str:
        """Return held text that turned out to be part of the answer, without the tokens that end it."""
        shown = "" if self._is_answer else self._begin_answer()
        return shown + (self._end if END.sub("", self._end) else "")

    def _begin_answer(self) -> str:
        """Return held text that turned out to be part of the answer; all that follows is, too."""
        held = "" if self._closing is not None else self._held
        self._held, self._is_answer = "", True
        return self.feed(held.lstrip() if self._has_parted else held)

    def _without_end(self, text: str) -> str:
        """Return a text without what may be tokens that end the answer, which are held back."""
        text = self._end + text
        end = len(text)
        if "<" in text[-MAX_END_CHARS:] and (begun := MAY_BEGIN_END.search(text, max(0, end - MAX_END_CHARS))):
            end = begun.start()
        for _ in range(MAX_ENDS):
            start = text.rfind("<", max(0, end - MAX_END_CHARS), end)
            if start < 0 or not END.fullmatch(text, start, end):
                break
            end = start
        self._end = text[end:]
        return text[:end]


# Enough to recognise a body.
MAX_START_CHARS = 1000
# Twice what current models write at most (128,000 tokens); one that writes more won't stop.
MAX_ANSWER_CHARS = 1_000_000
SAME_REASONS = {"model_length": "length", "max_tokens": "length"}  # As Mistral and Anthropic call it.


class PromptProgress(Struct, frozen=True):
    """How many tokens of a request the model has read, of how many."""

    read: int
    total: int


class AnswerReader:
    """Reads the parts of an answer, and keeps what isn't text. ``shown`` is set with the first text."""

    def __init__(self, api_key: str | None = None, *, thinks_at_once: bool = False) -> None:
        self._api_key = api_key
        self._half = ""
        self._length = 0
        self.thoughts = ThoughtFilter(thinks_at_once)
        self.shown = self.refused = False
        self.finish_reason: str | None = None
        self.usage: dict[str, Any] | None = None
        self.tool_calls = ToolCallCollector()
        self._carried: dict[str, list[Any]] = {}
        self.progress = PromptProgress(-1, 0)

    def reply(self) -> ModelReply:
        calls = self.tool_calls.calls()
        reason = "refusal" if self.refused else self.finish_reason
        details = (self.usage or {}).get("completion_tokens_details")
        hidden = bool(details.get("reasoning_tokens")) if isinstance(details, dict) else False
        thoughts = {name: _joined(pieces) for name, pieces in self._carried.items()}
        return ModelReply(reason, self.usage, calls, hidden or self.thoughts.chars > 0, thoughts if calls else {})

    def whole_answer(self, body: str) -> str:
        """Return the text of an answer that isn't streamed. Raises ModelFailed if it isn't one."""
        if is_web_page(body[:MAX_START_CHARS]):
            raise ModelFailed(f"The endpoint returned a web page instead of an answer. {CHECK_ADDRESS}")
        try:
            answer = json.loads(body)
        except (ValueError, RecursionError) as error:
            raise ModelFailed(f"The model sent something that is not JSON: {body[:80]!r}.") from error
        text = self.text_of(answer) + self.rest()
        if not answer.get("choices"):
            raise _no_answer(answer)
        return text

    def text_of(self, chunk: Any) -> str:
        """Return the text in a chunk of an answer. Raises ModelFailed, ContextTooLong, AnswerInterrupted."""
        if not isinstance(chunk, dict):
            raise _no_answer(chunk)
        if chunk.get("error") or ("choices" not in chunk and isinstance(chunk.get("message"), str)):
            raise reported_error(chunk, self._api_key)
        choices = chunk.get("choices") or [{}]
        choice = choices[0] if isinstance(choices, list) else None
        if not isinstance(choice, dict):
            raise _no_answer(chunk)
        self.usage = reported_usage(chunk, choice) or self.usage
        figures = progress if isinstance(progress := chunk.get("prompt_progress"), dict) else {}  # llama.cpp's
        read, total = figures.get("processed"), figures.get("total")
        if is_count(read) and is_count(total) and self.progress.read < read <= total:
            self.progress = PromptProgress(read, total)
        if is_name(reason := choice.get("finish_reason") or choice.get("finishReason")):
            self.finish_reason = SAME_REASONS.get(reason.lower(), reason.lower())
        delta = choice.get("delta") or choice.get("message") or {}
        if not isinstance(delta, dict):
            raise _no_answer(chunk)
        content = delta.get("content")
        if len(delta) > 1 or not isinstance(content, str):
            content = self._take_all(delta)
        self._length += len(content)
        if self._length > MAX_ANSWER_CHARS:
            raise AnswerInterrupted(f"The answer was cut off after {MAX_ANSWER_CHARS:,} characters.{TEXT_SAVED}")
        content, self._half = self._half + content, ""
        if "\ud800" <= content[-1:] <= "\udbff":  # The second half of this surrogate pair comes with the next chunk.
            content, self._half = content[:-1], content[-1]
        text = self.thoughts.feed(storable(content))
        self.shown = self.shown or bool(text)
        return text

    def rest(self) -> str:
        """Return the text that was held back until the end."""
        return self.thoughts.feed(storable(self._half)) + self.thoughts.rest()

    def _take_all(self, delta: dict[str, Any]) -> str:
        """Read everything in a delta, such as tool calls, and return the text. Raises AnswerTooLong."""
        if delta.get("tool_calls"):
            self.tool_calls.feed(delta["tool_calls"])
        for name, piece in thoughts_in(delta).items():
            self._carried.setdefault(name, []).append(piece)
            self.thoughts.chars += len(str(piece))
            self.thoughts.is_opened = False
        if self.thoughts.chars > MAX_ANSWER_CHARS:
            raise AnswerTooLong(f"The model thought for more than {MAX_ANSWER_CHARS:,} characters, so it was stopped.")
        if isinstance(refusal := delta.get("refusal"), str):
            self.refused = self.refused or bool(refusal)
            return _text_in(delta.get("content")) + refusal
        return _text_in(delta.get("content"))


def _no_answer(chunk: object) -> ModelFailed:
    return ModelFailed(f"The model sent something that is not an answer: {json.dumps(chunk)[:80]}.")


def _joined(pieces: list[Any]) -> Any:
    if all(isinstance(one, str) for one in pieces):
        return "".join(pieces)
    return [*chain(*pieces)] if all(isinstance(one, list) for one in pieces) else pieces[-1]


def _text_in(content: Any) -> str:
    """Return the text of a content, which may be a list of parts."""
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else ()
    texts = (part.get("text") for part in parts if isinstance(part, dict))
    return "".join(text for text in texts if isinstance(text, str))
