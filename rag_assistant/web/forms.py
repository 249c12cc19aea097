"""API actions as plain forms: the fields are the body, and the response is a redirect that no reload sends again."""

from collections.abc import Callable, Mapping
from functools import wraps
from typing import Any, cast

from flask import Response, redirect, url_for

from rag_assistant.records import Turn
from rag_assistant.records.errors import AssistantError
from rag_assistant.web.errors import page_with_error


def to_address(address: str) -> Response:
    return cast(Response, redirect(address, 303))


def to_page(endpoint: str, **arguments: Any) -> Response:
    """Redirect to a page."""
    return to_address(url_for(endpoint, **arguments))


def to_turn(turn: Turn, **arguments: Any) -> Response:
    """Redirect to a turn in its conversation."""
    return to_its_turn({"conversation_id": turn.conversation_id, "turn": turn.number}, **arguments)


def as_form(
    action: Callable[..., Response],
    leads_to: Callable[[Mapping[str, Any]], Response],
    page: Callable[..., str] | None = None,
) -> Callable[..., Response]:
    """Return the view of a form that calls an API action.

    ``leads_to`` gets the action's response and the URL parameters. An error is shown on the ``page``, if one is given.
    """

    @wraps(action)
    def view(**params: Any) -> Response:
        return leads_to(params | (action(**params).get_json(silent=True) or {}))

    return view if page is None else errors_on(page)(view)


def errors_on(page: Callable[..., str]) -> Callable[[Callable[..., Response]], Callable[..., Response]]:
    """Show a view's errors on a ``page`` that takes the URL parameters and the ``error``, not on an error page."""

    def with_its_page(view: Callable[..., Response]) -> Callable[..., Response]:
        @wraps(view)
        def shown(**params: Any) -> Response:
            try:
                return view(**params)
            except AssistantError as error:
                return page_with_error(error, page(**params, error=error))

        return shown

    return with_its_page


def to(endpoint: str, *params: str, **more: Any) -> Callable[[Mapping[str, Any]], Response]:
    """Return a function that redirects to a page, whose address takes some ``params`` of the response."""
    return lambda data: to_page(endpoint, **{name: data[name] for name in params}, **more)


def to_its_turn(data: Mapping[str, Any], **more: Any) -> Response:
    """Redirect to the turn in an action's response."""
    conversation_id, anchor = data["conversation_id"], f"turn-{data['turn']}"
    return to_page("pages.conversation", conversation_id=conversation_id, _anchor=anchor, **more)
