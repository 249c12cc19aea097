"""Flask: the API, the event streams and the pages. Nothing below this folder knows HTTP."""

from __future__ import annotations

from typing import TYPE_CHECKING

from flask import Flask
from werkzeug.routing import IntegerConverter, Map

from rag_assistant.records import LARGEST_NUMBER
from rag_assistant.web import (
    api,
    conversations_api,
    document_pages,
    documents_api,
    errors,
    history_pages,
    pages,
    receipt_pages,
    security,
    settings_pages,
    sidebar,
    source_pages,
    static_files,
    system,
)

if TYPE_CHECKING:
    from rag_assistant.factory import Services


PARTS = (
    api,
    conversations_api,
    documents_api,
    pages,
    document_pages,
    source_pages,
    receipt_pages,
    history_pages,
    sidebar,
    settings_pages,
)


class NumberConverter(IntegerConverter):
    """A number in an address that can be an id; a larger one is an address at which there is nothing."""

    def __init__(self, url_map: Map) -> None:
        super().__init__(url_map, max=LARGEST_NUMBER)


def init_app(app: Flask, services: Services) -> None:
    """Connect every way in over HTTP."""
    app.url_map.converters["int"] = NumberConverter
    security.init_app(app, services.settings.current)
    errors.init_app(app)
    system.init_app(app, services)
    static_files.init_app(app)
    for part in PARTS:
        app.register_blueprint(part.blueprint)

    @app.before_request
    def start_services() -> None:
        services.start()
