"""Addresses in templates: made by Flask once for each shape, and not for each row of a page."""

from __future__ import annotations

import re
from functools import lru_cache, partial
from typing import Any

from flask import Flask, request

MAX_SHAPES = 2_000
# Stands for a number while an address is made; no id has so many digits.
PLACES = re.compile(r"70000000000000(\d\d)")
FIRST_PLACE = 70_000_000_000_000_00
NUMBER = object()


def init_app(app: Flask) -> None:
    """Let ``url_for`` in templates remember the shapes of addresses."""

    @lru_cache(maxsize=MAX_SHAPES)
    def form(script_root: str, endpoint: str, names: tuple[str, ...], kept: tuple[Any, ...]) -> str:  # noqa: ARG001 - Addresses begin with it.
        """Return an address with ``{n}`` where value number n stands, if that is a number."""
        values: dict[str, Any] = {
            name: FIRST_PLACE + place if value is NUMBER else value
            for place, (name, value) in enumerate(zip(names, kept, strict=True))
        }
        made = app.url_for(endpoint, **values)
        return PLACES.sub(lambda found: f"{{{int(found[1])}}}", made.replace("{", "{{").replace("}", "}}"))

    def address(script_root: str, endpoint: str, /, **values: Any) -> str:
        """Return an address as Flask's ``url_for`` does; values are numbers, texts or None."""
        if "_external" in values:  # It begins with the host of the request.
            return app.url_for(endpoint, **values)
        given = values.values()
        kept = tuple([NUMBER if type(value) is int else value for value in given])
        return form(script_root, endpoint, tuple(values), kept).format(*given)

    def url_for(endpoint: str, /, **values: Any) -> str:
        return address(request.script_root, endpoint, **values)

    app.add_template_global(url_for, "url_for")
    # A page's own does not look at the request each time.
    app.context_processor(lambda: {"url_for": partial(address, request.script_root)})
