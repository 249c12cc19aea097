"""An answer as a chat completion or a response (Open Responses, 2026-04-24), and its events as each has them. Pure."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pkgutil import get_data
from typing import Any

import msgspec

from rag_assistant.records import Event, Message
from rag_assistant.web.api.events import HEARTBEAT
from rag_assistant.web.errors import code_of, openai_error
from rag_assistant.web.v1.answers import About, citations_of, extension, finish_reason_of, tokens_of
from rag_assistant.web.v1.parts import packed_thoughts

DONE = b"data: [DONE]\n\n"
STATUS = {"running": "in_progress", "stopped": "cancelled", "interrupted": "failed", "failed": "failed"}
INCOMPLETE = {"length": "max_output_tokens", "content_filter": "content_filter"}
# What a response has where its request says nothing; most of it no request can change here.
UNSAID: dict[str, Any] = msgspec.json.decode(get_data(str(__package__), "response.json") or b"")


def completion(data: Mapping[str, Any], about: About, as_function: bool = False) -> dict[str, Any]:
    """Return a finished answer as a chat completion; ``as_function``: with a call as before there were tools."""
    cited = _annotations(data, about)
    message = {"role": "assistant", "content": data["answer"], "refusal": None, "annotations": cited}
    if calls := data.get("tool_calls"):
        message |= data.get("thoughts", {}) | {"content": data["answer"] or None} | _call_fields(calls, as_function)
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
                delta = _call_fields([{"index": n} | call for n, call in enumerate(calls)], as_function)
                yield _chunk(about, event.data.get("thoughts", {}) | delta, None, more)
            reason = _finish_reason(event.data, as_function)
            yield _chunk(about, {"annotations": cited} if cited else {}, reason, more | extra)
            if include_usage:
                yield _data(_object("chat.completion.chunk", about) | {"choices": [], "usage": usage(event.data)})
            yield DONE


def _call_fields(calls: Sequence[dict[str, Any]], as_function: bool) -> dict[str, Any]:
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


def resource(data: Mapping[str, Any], about: About, wanted: Mapping[str, Any]) -> dict[str, Any]:
    """Return an answer as a response, from one of its events; before its end it has no output.

    ``wanted`` are the fields of the request, which are repeated.
    """
    status = STATUS.get(data["status"], "completed")
    error = data.get("error")
    cut_off = INCOMPLETE.get(finish_reason_of(data)) if status == "completed" else None
    finished = status != "in_progress"
    return (
        UNSAID
        | {name: value for name, value in wanted.items() if value is not None}
        | {
            "id": f"resp_{about.id}",
            "object": "response",
            "created_at": about.created,
            "completed_at": about.created if status == "completed" and not cut_off else None,
            "status": "incomplete" if cut_off else status,
            "incomplete_details": {"reason": cut_off} if cut_off else None,
            "error": {"code": code_of(error["type"]), "message": error["message"]} if error else None,
            "model": about.model,
            "output": _output(data, about) if finished else [],
            "store": about.stored,
            "usage": _usage(*tokens_of(data)) if finished and "answer" in data else None,
        }
        | extension(data, about)
    )


def response_frames(events: Iterable[Event | None], about: About, wanted: Mapping[str, Any]) -> Iterator[bytes]:
    """Yield the events of an answer as those of a response."""
    numbered = 0
    for event in _events(events, about, wanted):
        if event is None:
            yield HEARTBEAT
            continue
        name = event["type"]
        data = msgspec.json.encode(event | {"sequence_number": numbered})
        yield b"event: " + name.encode() + b"\ndata: " + data + b"\n\n"
        numbered += 1
    yield DONE


def _events(events: Iterable[Event | None], about: About, wanted: Mapping[str, Any]) -> Iterator[dict[str, Any] | None]:
    began = speaks = False
    for event in events:
        if event is None:
            yield None
        elif event.name in ("start", "token", "end") and not began:
            began = True
            start = event.data if event.name == "start" else {"status": "running"}
            yield {"type": "response.created", "response": resource(start, about, wanted)}
            yield {"type": "response.in_progress", "response": resource(start, about, wanted)}
        if event is not None and event.name == "token":
            if not speaks:
                item = {"id": f"msg_{about.id}", "status": "in_progress", "role": "assistant", "content": []}
                yield {"type": "response.output_item.added", "output_index": 0, "item": {"type": "message"} | item}
                yield _part_of(about, "response.content_part.added", part=_text("", []))
            speaks = True
            yield _part_of(about, "response.output_text.delta", delta=event.data["text"], logprobs=[])
        elif event is not None and event.name in ("end", "error"):
            whole = resource(event.data, about, wanted)
            yield from _closing(event.data, about) if speaks and "answer" in event.data else ()
            for n, item in enumerate(_output(event.data, about)):
                yield from _called(n, item) if item["type"] == "function_call" else ()
                if item["type"] == "reasoning":
                    yield {"type": "response.output_item.added", "output_index": n, "item": item}
                    yield {"type": "response.output_item.done", "output_index": n, "item": item}
            yield {"type": f"response.{LAST.get(whole['status'], 'completed')}", "response": whole}


# A cancelled response has no event of its own.
LAST = {"failed": "failed", "incomplete": "incomplete", "cancelled": "incomplete"}


def _closing(data: Mapping[str, Any], about: About) -> Iterator[dict[str, Any]]:
    message = _message(data, about)
    part = message["content"][0]
    for n, cited in enumerate(part["annotations"]):
        yield _part_of(about, "response.output_text.annotation.added", annotation_index=n, annotation=cited)
    yield _part_of(about, "response.output_text.done", text=part["text"], logprobs=[])
    yield _part_of(about, "response.content_part.done", part=part)
    yield {"type": "response.output_item.done", "output_index": 0, "item": message}


def _output(data: Mapping[str, Any], about: About) -> list[dict[str, Any]]:
    calls, packed = data.get("tool_calls", ()), packed_thoughts(data)
    thought = {"type": "reasoning", "id": f"rs_{about.id}", "summary": [], "encrypted_content": packed}
    items = [_message(data, about)] if data.get("answer") else []
    items += [thought] if packed else []
    for n, call in enumerate(calls):
        named = {"type": "function_call", "id": f"fc_{about.id}_{n}", "call_id": call["id"], "status": "completed"}
        items.append(named | call["function"])
    return items


def _called(n: int, item: dict[str, Any]) -> Iterator[dict[str, Any]]:
    arguments, place = item["arguments"], {"item_id": item["id"], "output_index": n}
    begun = item | {"arguments": "", "status": "in_progress"}
    yield {"type": "response.output_item.added", "output_index": n, "item": begun}
    yield {"type": "response.function_call_arguments.delta", "delta": arguments} | place
    yield {"type": "response.function_call_arguments.done", "arguments": arguments, "name": item["name"]} | place
    yield {"type": "response.output_item.done", "output_index": n, "item": item}


def _part_of(about: About, kind: str, **fields: Any) -> dict[str, Any]:
    return {"type": kind, "item_id": f"msg_{about.id}", "output_index": 0, "content_index": 0} | fields


def _message(data: Mapping[str, Any], about: About) -> dict[str, Any]:
    cited = [{"type": "url_citation"} | one for one in citations_of(data, about)]
    return {
        "type": "message",
        "id": f"msg_{about.id}",
        "status": "completed" if data["status"] == "completed" else "incomplete",
        "role": "assistant",
        "content": [_text(data["answer"], cited)],
    }


def _text(text: str, annotations: Sequence[dict[str, Any]]) -> dict[str, Any]:
    return {"type": "output_text", "text": text, "annotations": list(annotations), "logprobs": []}


def _usage(prompt: int, answer: int, cached: int) -> dict[str, Any]:
    return {
        "input_tokens": prompt,
        "input_tokens_details": {"cached_tokens": cached},
        "output_tokens": answer,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": prompt + answer,
    }


def items_of(messages: Iterable[Message]) -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = []
    for message in messages:
        text, role = message.get("content"), message["role"]
        if role == "tool":
            items.append({"type": "function_call_output", "call_id": message.get("tool_call_id"), "output": text or ""})
            continue
        if text:
            kind = "output_text" if role == "assistant" else "input_text"
            items.append({"type": "message", "role": role, "content": [{"type": kind, "text": text}]})
        for call in message.get("tool_calls") or ():
            items.append({"type": "function_call", "call_id": call["id"]} | dict(call["function"]))
    return items


def compaction(
    about: About, summary: str, items: Sequence[dict[str, Any]], tokens: tuple[int, int], result: Mapping[str, Any]
) -> dict[str, Any]:
    """Return a compacted history: the opaque ``summary``, and the items that stay."""
    item = {"type": "compaction", "id": f"cmp_{about.id}", "encrypted_content": summary}
    return {
        "id": f"resp_{about.id}",
        "object": "response.compaction",
        "created_at": about.created,
        "output": [item, *items],
        "usage": _usage(*tokens, 0),
        "rag_assistant": dict(result),
    }
