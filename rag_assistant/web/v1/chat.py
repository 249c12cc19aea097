"""An answer as a chat completion, and its events as chunks. Pure."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import msgspec

from rag_assistant.records import Event
from rag_assistant.web.api.events import HEARTBEAT
from rag_assistant.web.v1.errors import openai_error
from rag_assistant.web.v1.extension import About, citations_of, extension, finish_reason_of, tokens_of

DONE = b"data: [DONE]\n\n"


def completion(data: Mapping[str, Any], about: About) -> dict[str, Any]:
    """Return a finished answer as a chat completion."""
    cited = _annotations(data, about)
    message = {"role": "assistant", "content": data["answer"], "refusal": None, "annotations": cited}
    if calls := data.get("tool_calls"):
        message |= data.get("thoughts", {}) | {"content": data["answer"] or None, "tool_calls": calls}
    choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": finish_reason_of(data)}
    return _object("chat.completion", about) | {"choices": [choice], "usage": usage(data)} | extension(data, about)


def chunks(events: Iterable[Event | None], about: About, include_usage: bool) -> Iterator[bytes]:
    """Yield the events of an answer as chunks of a chat completion.

    Each has ``choices``, empty only in the last one, if usage was requested. An error ends the stream without the final
    marker.
    """
    more = {"usage": None} if include_usage else {}
    began = False
    for event in events:
        if event is None:
            yield HEARTBEAT
        elif event.name == "start" or (event.name == "token" and not began):
            began = True
            delta = {"role": "assistant", "content": event.data.get("text", "")}
            extra = extension(event.data, about) if event.name == "start" else {}
            yield _chunk(about, delta, None, more | extra)
        elif event.name == "token":
            yield _chunk(about, {"content": event.data["text"]}, None, more)
        elif event.name == "error":
            yield _data({"error": openai_error(500, event.data["error"])})
        elif event.name == "end":
            cited = _annotations(event.data, about)
            extra = extension(event.data, about)
            if calls := event.data.get("tool_calls"):
                delta = {"tool_calls": [{"index": n} | call for n, call in enumerate(calls)]}
                yield _chunk(about, event.data.get("thoughts", {}) | delta, None, more)
            yield _chunk(about, {"annotations": cited} if cited else {}, finish_reason_of(event.data), more | extra)
            if include_usage:
                yield _data(_object("chat.completion.chunk", about) | {"choices": [], "usage": usage(event.data)})
            yield DONE


def usage(data: Mapping[str, Any]) -> dict[str, Any]:
    """Return an answer's token usage."""
    prompt, answer, cached = tokens_of(data)
    return {
        "prompt_tokens": prompt,
        "completion_tokens": answer,
        "total_tokens": prompt + answer,
        "prompt_tokens_details": {"cached_tokens": cached},
    }


def _annotations(data: Mapping[str, Any], about: About) -> list[dict[str, Any]]:
    return [{"type": "url_citation", "url_citation": cited} for cited in citations_of(data, about)]


def _object(kind: str, about: About) -> dict[str, Any]:
    return {"id": f"chatcmpl-{about.id}", "object": kind, "created": about.created, "model": about.model}


def _chunk(about: About, delta: dict[str, Any], finish_reason: str | None, more: dict[str, Any]) -> bytes:
    choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish_reason}
    return _data(_object("chat.completion.chunk", about) | {"choices": [choice]} | more)


def _data(data: Mapping[str, Any]) -> bytes:
    return b"data: " + msgspec.json.encode(data) + b"\n\n"
