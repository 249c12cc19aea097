"""Answer what was asked in OpenAI's protocol: whole, or as a stream that begins when the figures are known."""

import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import chain
from typing import Any

from flask import Response, jsonify, url_for
from msgspec import Struct

from rag_assistant.records import Event, Question
from rag_assistant.web.api.events import HEADERS, collect
from rag_assistant.web.api.turns import readers, while_let_in
from rag_assistant.web.errors import answer_with_error
from rag_assistant.web.services import services
from rag_assistant.web.v1.extension import About, headers_of
from rag_assistant.web.v1.reading import Sent

Events = Iterator[Event | None]


class Asked(Struct, frozen=True):
    """A question with what came along; a ``stored`` one is asked as by /api/query, and what came along is not read."""

    question: Question
    sent: Sent
    model: str
    ignored: list[str]
    stored: bool
    manages_context: bool = False


class _Answering(Struct, frozen=True):
    """An answer that has begun. ``leave`` is what is done when its reader goes."""

    events: Events
    about: About
    leave: Callable[[], None]


def whole(incoming: Asked, shape: Callable[[Mapping[str, Any], About], Mapping[str, Any]]) -> Response:
    """Answer with the ``shape`` of the whole answer. One that failed or broke off is an error."""
    answering = _begin(incoming)
    try:
        data = collect(answering.events)
    finally:
        answering.leave()
    if "error" in data:
        return answer_with_error(data)
    response = jsonify(shape(data, answering.about))
    response.headers.update(headers_of(data, answering.about))
    return response


def streamed(incoming: Asked, frames: Callable[[Iterable[Event | None], About], Iterator[bytes]]) -> Response:
    """Answer with a stream of ``frames``.

    It begins with the figures, which stand in its headers, or after a while without them; what fails before is an
    error.
    """
    answering = _begin(incoming)
    try:
        begun = _until_start(answering.events)
        first = begun[-1]
        if first is not None and first.name == "error":
            answering.leave()
            return answer_with_error(first.data)
        shown = frames(chain(begun, answering.events), answering.about)
        response = Response(shown, headers=HEADERS)
        response.call_on_close(answering.leave)
        response.headers.update(headers_of(first.data, answering.about) if first is not None else {})
        return response
    except BaseException:
        answering.leave()
        raise


def _begin(incoming: Asked) -> _Answering:
    # The end of a stream comes when the request is over, and knows no application.
    places, assistant = readers(), services().assistant
    with places.place_for_stream():
        if incoming.stored:
            turn = assistant.ask(incoming.question)
            events, own_id, stop = assistant.follow(turn.id), str(turn.id), None
        else:
            # Nobody comes back for an answer that is not stored: it ends with its reader.
            live = assistant.ask_stateless(incoming.question, incoming.sent.history)
            events, own_id, stop = assistant.follow_live(live), f"x{uuid.uuid4().hex}", live.call.stop
        facts = about(
            own_id, incoming.model, incoming.ignored, stored=incoming.stored, manages_context=incoming.manages_context
        )

    def leave() -> None:
        places.leave()
        if stop is not None:
            stop()

    return _Answering(while_let_in(events), facts, leave)


def about(
    own_id: str, model: str, ignored: Iterable[str] = (), *, stored: bool, manages_context: bool = False
) -> About:
    """Return what the views know of an answer besides its events."""
    root = url_for("document_pages.documents", _external=True)

    def link(source: Mapping[str, Any]) -> str:
        return f"{root}/{source['document_id']}?start={source['start']}&end={source['end']}"

    return About(own_id, model, int(time.time()), link, tuple(ignored), stored, manages_context)


def _until_start(events: Events) -> list[Event | None]:
    """Return the events up to the first that says more than what is awaited, or up to a heartbeat."""
    begun: list[Event | None] = []
    for event in events:
        begun.append(event)
        if event is None or event.name != "state":
            break
    return begun
