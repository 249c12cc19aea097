"""Flask: the API, the event streams and the pages. Nothing below this folder knows HTTP."""

from __future__ import annotations

from typing import TYPE_CHECKING

from flask import Flask

from rag_assistant.web import api, documents_api, errors, pages, security, system

if TYPE_CHECKING:
    from rag_assistant.factory import Services


def init_app(app: Flask, services: Services) -> None:
    """Connect every way in over HTTP."""
    security.init_app(app, services.settings.current)
    errors.init_app(app)
    system.init_app(app, services)
    for blueprint in (api.blueprint, documents_api.blueprint, pages.blueprint):
        app.register_blueprint(blueprint)

    @app.before_request
    def start_services() -> None:
        services.start()
