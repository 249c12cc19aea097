"""An answer as a chat completion, and its events as chunks. Pure."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import msgspec

from rag_assistant.records import Event
from rag_assistant.web.api.events import HEARTBEAT
from rag_assistant.web.errors import openai_error
from rag_assistant.web.v1.answers import About, citations_of, extension, finish_reason_of, tokens_of

DONE = b"data: [DONE]\n\n"


def completion(data: Mapping[str, Any], about: About, as_function: bool = False) -> dict[str, Any]:
    """Return a finished answer as a chat completion; ``as_function``: with a call as before there were tools."""
    cited = _annotations(data, about)
    message = {"role": "assistant", "content": data["answer"], "refusal": None, "annotations": cited}
    if calls := data.get("tool_calls"):
        message |= data.get("thoughts", {}) | {"content": data["answer"] or None} | _called(calls, as_function)
    choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": _finish_reason(data, as_function)}
    return _object("chat.completion", about) | {"choices": [choice], "usage": usage(data)} | extension(data, about)


def chunks(events: Iterable[Event | None], about: About, include_usage: bool, as_function: bool) -> Iterator[bytes]:
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
                delta = _called([{"index": n} | call for n, call in enumerate(calls)], as_function)
                yield _chunk(about, event.data.get("thoughts", {}) | delta, None, more)
            reason = _finish_reason(event.data, as_function)
            yield _chunk(about, {"annotations": cited} if cited else {}, reason, more | extra)
            if include_usage:
                yield _data(_object("chat.completion.chunk", about) | {"choices": [], "usage": usage(event.data)})
            yield DONE


def _called(calls: Sequence[dict[str, Any]], as_function: bool) -> dict[str, Any]:
    return {"function_call": calls[0]["function"]} if as_function else {"tool_calls": calls}


def _finish_reason(data: Mapping[str, Any], as_function: bool) -> str:
    return "function_call" if as_function and data.get("tool_calls") else finish_reason_of(data)


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
