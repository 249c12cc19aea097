"""Addresses in templates: made by Flask once for each shape, and not for each row of a page."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any

from flask import Flask, request

MAX_SHAPES = 2_000
# Stands for a number while an address is made; no id has so many digits.
PLACES = re.compile(r"70000000000000(\d\d)")
FIRST_PLACE = 70_000_000_000_000_00
NUMBER = object()
# The names of the values of an address, with those that are no numbers.
Shape = tuple[tuple[str, Any], ...]


def init_app(app: Flask) -> None:
    """Let ``url_for`` in templates remember the shapes of addresses."""

    @lru_cache(maxsize=MAX_SHAPES)
    def pieces(script_root: str, endpoint: str, shape: Shape) -> list[str]:  # noqa: ARG001 - Addresses begin with it.
        values: dict[str, Any] = {
            name: FIRST_PLACE + place if value is NUMBER else value for place, (name, value) in enumerate(shape)
        }
        return PLACES.split(app.url_for(endpoint, **values))

    def url_for(endpoint: str, **values: Any) -> str:
        """Return an address as Flask's ``url_for`` does; values are numbers, texts or None."""
        if "_external" in values:  # It begins with the host of the request.
            return app.url_for(endpoint, **values)
        given = list(values.values())
        shape = tuple((name, NUMBER if type(value) is int else value) for name, value in values.items())
        text, *rest = pieces(request.script_root, endpoint, shape)
        for place, behind in zip(rest[::2], rest[1::2], strict=True):
            text += f"{given[int(place)]}{behind}"
        return text

    app.add_template_global(url_for, "url_for")
