"""Every field of the published specification is passed on, used, named as ignored, or refused by name."""

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import count
from types import NoneType, UnionType
from typing import (
    Annotated,
    Any,
    Literal,
    NotRequired,
    Required,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)

import pytest
from flask.testing import FlaskClient
from openai.types.chat import completion_create_params as chat
from openai.types.responses import response_create_params as responses
from typing_extensions import is_typeddict

from tests.testkit.stub_model import StubModel

NUMBERS = count(100)
PLAIN: dict[Any, Any] = {int: 1, float: 0.5, bool: True, object: {"a": "b"}}
# How deep a value is filled, and up to where a field is sent in each of its forms.
MAX_DEPTH, MAX_FORMS_DEPTH = 5, 3
# What decides how the answer is made or returned, without being sent to a model.
USED = {
    "chat": {"model", "messages", "stream", "stream_options.include_usage", "max_completion_tokens", "max_tokens", "n"},
    "responses": {"model", "input", "instructions", "store", "previous_response_id", "max_output_tokens", "truncation"},
    "messages": {"model", "messages", "max_tokens", "system", "stream"},
}
# Fields whose place says what they mean: roles and kinds.
KINDS = {"type", "role"}


def values(hint: Any, depth: int = 0) -> Iterator[Any]:
    """Yield a value for each form that a type has, with all fields that it may have."""
    origin, given = get_origin(hint), get_args(hint)
    if origin in (Required, NotRequired, Annotated):
        yield from values(given[0], depth)
    elif origin in (Union, UnionType):
        for one in given:
            yield from () if one is NoneType else values(one, depth)
    elif origin is Literal:
        yield given[0]
    elif is_typeddict(hint):
        forms = {name: [*values(inner, depth + 1)] for name, inner in get_type_hints(hint).items()}
        first = {name: given[0] for name, given in forms.items() if given}
        if depth < MAX_DEPTH:
            yield first
        for name, given in forms.items() if depth < MAX_FORMS_DEPTH else ():
            yield from (first | {name: other} for other in given[1:])
    elif origin is not None and issubclass(origin, Iterable) and not issubclass(origin, (dict, Mapping)):
        yield from ([one] for one in values(given[0], depth + 1))
    else:
        yield f"xyz{next(NUMBERS)}" if hint is str else PLAIN.get(hint, {"a": "b"})


def leaves(value: Any, place: str) -> Iterator[tuple[str, Any]]:
    """Yield the fields in a value that say something, by their places."""
    if isinstance(value, dict) and value:
        for name, inner in value.items():
            yield from leaves(inner, f"{place}.{name}")
    elif isinstance(value, list) and value:
        for inner in value:
            yield from leaves(inner, f"{place}[]")
    elif value not in (None, [], {}, "auto", "none", False):
        yield place, value


def fields_of(base: Any, streaming: Any) -> list[tuple[str, Any]]:
    hints = get_type_hints(base) | get_type_hints(streaming)
    return [(name, value) for name, hint in sorted(hints.items()) for value in values(hint) if name not in ("stream",)]


def fields_of_chats() -> list[tuple[str, Any]]:
    return fields_of(chat.CompletionCreateParamsBase, chat.CompletionCreateParamsNonStreaming)


def fields_of_responses() -> list[tuple[str, Any]]:
    return fields_of(responses.ResponseCreateParamsBase, responses.ResponseCreateParamsNonStreaming)


def fields_of_messages() -> list[tuple[str, Any]]:
    from anthropic.types import message_create_params as message  # To load it takes two seconds.

    return fields_of(message.MessageCreateParamsBase, message.MessageCreateParamsNonStreaming)


def untold(answer: Any, sent: Any, name: str, value: Any, used: set[str]) -> list[str]:
    """Return the parts of a field that were neither passed on, nor named, nor refused by name."""
    if answer.status_code >= 400:
        error = answer.json["error"]
        names = [name, *(leaf for _, leaf in leaves(value, name) if isinstance(leaf, str))]
        told = f"{error['param']} {error['message']}"
        return [] if any(one in told for one in names) else [told]
    ignored = [re.sub(r"\[\d+\]", "[]", one) for one in answer.json["rag_assistant"]["ignored"]]
    lost = []
    for place, leaf in leaves(value, name):
        steps = [place[: match.end()] for match in re.finditer(r"[^.\[\]]+(?:\[\])*", place)]
        key = place.rpartition(".")[2].removesuffix("[]")
        is_passed = leaf in sent if isinstance(leaf, str) else f'"{key}": {json.dumps(leaf)}' in sent
        if not (is_passed or {*steps, *(one.removesuffix("[]") for one in steps)} & {*ignored, *used}):
            lost.append(place)
    return [place for place in lost if place.rpartition(".")[2] not in KINDS]


ROUTES: dict[str, tuple[str, str, Callable[[], list[tuple[str, Any]]]]] = {
    "chat": ("/v1/chat/completions", "messages", fields_of_chats),
    "responses": ("/v1/responses", "input", fields_of_responses),
    "messages": ("/v1/messages", "messages", fields_of_messages),
}


@pytest.mark.long
@pytest.mark.parametrize("route", ROUTES)
def test_no_field_is_dropped_silently(client: FlaskClient, stub: StubModel, route: str) -> None:
    path, messages, fields = ROUTES[route]
    question: list[Any] = [{"role": "user", "content": "Why?"}]
    lost = {}
    for name, value in fields():
        if name == messages and isinstance(value, list):
            value += question
        stub.requests.clear()
        body = {"model": "rag-assistant", messages: question} | ({name: value} if name != "model" else {})
        answer = client.post(path, json=body)
        sent = json.dumps([one.body for one in stub.requests]) + json.dumps((answer.json or {}).get("metadata"))
        if places := untold(answer, sent, name, value, USED[route] - {messages}):
            lost[name] = places
    assert lost == {}
