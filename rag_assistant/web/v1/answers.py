"""Answer requests in OpenAI's protocol: whole, or as a stream that begins when the figures are known."""

import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack
from itertools import chain
from typing import Any

from flask import Response, jsonify, url_for
from msgspec import Struct
from msgspec.structs import replace

from rag_assistant.records import Event, Question
from rag_assistant.web.api.events import HEADERS, collect
from rag_assistant.web.api.turns import readers, while_let_in
from rag_assistant.web.errors import answer_with_error
from rag_assistant.web.routing import services
from rag_assistant.web.v1.extension import About, headers_of
from rag_assistant.web.v1.reading import Sent


class Asked(Struct, frozen=True):
    """A question with the messages sent along, which a stored one doesn't use, and what is known of its answer."""

    question: Question
    sent: Sent
    about: About


def whole(incoming: Asked, shape: Callable[[Mapping[str, Any], About], Mapping[str, Any]]) -> Response:
    """Return the whole answer in a ``shape``. One that failed or broke off is an error."""
    with readers().place() as leaving:
        events, facts = _begin(incoming, leaving)
        data = collect(events)
    if "error" in data:
        return answer_with_error(data)
    response = jsonify(shape(data, facts))
    response.headers.update(headers_of(data, facts))
    return response


def streamed(incoming: Asked, frames: Callable[[Iterable[Event | None], About], Iterator[bytes]]) -> Response:
    """Return a stream of ``frames``.

    It begins when the figures for its headers are known, or after a while without them; earlier failures are errors.
    """
    with readers().place() as leaving:
        events, facts = _begin(incoming, leaving)
        begun: list[Event | None] = []
        for event in events:  # Up to the first with content, or to a heartbeat.
            begun.append(event)
            if event is None or event.name != "state":
                break
        first = begun[-1]
        if first is not None and first.name == "error":
            return answer_with_error(first.data)
        response = Response(frames(chain(begun, events), facts), headers=HEADERS)
        response.headers.update(headers_of(first.data, facts) if first is not None else {})
        response.call_on_close(leaving.pop_all().close)
        return response


def _begin(incoming: Asked, leaving: ExitStack) -> tuple[Iterator[Event | None], About]:
    """Return the events of a started answer, and what is known of it; ``leaving`` ends it."""
    assistant = services().assistant
    if incoming.about.stored:
        turn = assistant.ask(incoming.question)
        events, own_id = assistant.follow(turn.id), str(turn.id)
    else:
        # Nobody reconnects to an answer that isn't stored: it ends with its client.
        live = assistant.ask_stateless(incoming.question, incoming.sent.history)
        leaving.callback(live.call.stop)
        events, own_id = assistant.follow_live(live), f"x{uuid.uuid4().hex}"
    return while_let_in(events), replace(incoming.about, id=own_id)


def about(
    model: str, ignored: Iterable[str] = (), *, own_id: str = "", stored: bool, manages_context: bool = False
) -> About:
    """Return what the views know of an answer besides its events; its id may be unknown before it is asked for."""
    root = url_for("document_pages.documents", _external=True)

    def link(source: Mapping[str, Any]) -> str:
        return f"{root}/{source['document_id']}?start={source['start']}&end={source['end']}"

    return About(own_id, model, int(time.time()), link, tuple(ignored), stored, manages_context)
