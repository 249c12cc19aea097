"""An answer as a message of Anthropic's protocol, and its events as that protocol has them. Pure."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import msgspec

from rag_assistant.records import Event
from rag_assistant.web.api.events import HEARTBEAT
from rag_assistant.web.v1.errors import anthropic_error
from rag_assistant.web.v1.extension import About, extension, finish_reason_of, packed_thoughts, tokens_of

STOPPED = {"stop": "end_turn", "length": "max_tokens", "tool_calls": "tool_use", "content_filter": "refusal"}
# Thoughts of a provider's own form are opaque.
THINKING = {"type": "thinking", "thinking": "", "signature": ""}


def message(data: Mapping[str, Any], about: About) -> dict[str, Any]:
    """Return a finished answer as a message."""
    texts = [{"type": "text", "text": data["answer"]}] if data["answer"] else []
    if packed := packed_thoughts(data):
        texts.append(THINKING | {"signature": packed})
    calls = [_call(one) | {"input": _input(one)} for one in data.get("tool_calls", ())]
    return _message(data, about, [*texts, *calls], STOPPED[finish_reason_of(data)])


def frames(events: Iterable[Event | None], about: About) -> Iterator[bytes]:
    """Yield the events of an answer as those of a message. An error ends the stream."""
    began = speaks = False
    for event in events:
        if event is None:
            yield _frame("ping") if began else HEARTBEAT
            continue
        if event.name in ("start", "token", "end") and not began:
            began = True
            yield _frame("message_start", message=_message({"answer": ""} | event.data, about, [], None))
        if event.name == "token":
            if not speaks:
                speaks = True
                yield _frame("content_block_start", index=0, content_block={"type": "text", "text": ""})
            yield _frame("content_block_delta", index=0, delta={"type": "text_delta", "text": event.data["text"]})
        elif event.name == "error":
            yield _frame(**anthropic_error(500, event.data["error"]))
        elif event.name == "end":
            if speaks:
                yield _frame("content_block_stop", index=0)
            if packed := packed_thoughts(event.data):
                yield _frame("content_block_start", index=int(speaks), content_block=THINKING)
                signed = {"type": "signature_delta", "signature": packed}
                yield _frame("content_block_delta", index=int(speaks), delta=signed)
                yield _frame("content_block_stop", index=int(speaks))
            for n, call in enumerate(event.data.get("tool_calls", ()), int(speaks) + bool(packed)):
                arguments = {"type": "input_json_delta", "partial_json": call["function"]["arguments"]}
                yield _frame("content_block_start", index=n, content_block=_call(call) | {"input": {}})
                yield _frame("content_block_delta", index=n, delta=arguments)
                yield _frame("content_block_stop", index=n)
            ended = {"stop_reason": STOPPED[finish_reason_of(event.data)], "stop_sequence": None}
            yield _frame("message_delta", delta=ended, usage=_usage(event.data), **extension(event.data, about))
            yield _frame("message_stop")


def _message(data: Mapping[str, Any], about: About, content: list[Any], stop_reason: str | None) -> dict[str, Any]:
    own = {"id": f"msg_{about.id}", "type": "message", "role": "assistant", "model": about.model, "content": content}
    return own | {"stop_reason": stop_reason, "stop_sequence": None, "usage": _usage(data)} | extension(data, about)


def _call(call: Mapping[str, Any]) -> dict[str, Any]:
    return {"type": "tool_use", "id": call["id"], "name": call["function"]["name"]}


def _input(call: Mapping[str, Any]) -> dict[str, Any]:
    arguments = call["function"]["arguments"]
    try:
        return msgspec.json.decode(arguments, type=dict[str, Any])
    except msgspec.MsgspecError:
        return {"arguments": arguments}  # The model wrote no JSON.


def _usage(data: Mapping[str, Any]) -> dict[str, int]:
    """Return an answer's token usage; ``input_tokens`` are those that the cache did not have."""
    prompt, answer, cached = tokens_of(data)
    counts = {"input_tokens": max(0, prompt - cached), "output_tokens": answer}
    return counts | {"cache_creation_input_tokens": 0, "cache_read_input_tokens": cached}


def _frame(type: str, **fields: Any) -> bytes:  # noqa: A002 - the protocol's word
    return f"event: {type}\ndata: ".encode() + msgspec.json.encode({"type": type, **fields}) + b"\n\n"
