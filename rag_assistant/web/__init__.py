"""Flask: the API, the event streams and the pages. Nothing below this folder knows HTTP."""

from collections.abc import Mapping
from importlib import import_module

from flask import Flask, request
from werkzeug.routing import IntegerConverter, Map

from rag_assistant.records import MAX_INT32
from rag_assistant.records.base import build_types
from rag_assistant.services import Services, open_services
from rag_assistant.settings.package_files import FILES
from rag_assistant.web import assets, errors, health, identity, languages, middleware, routing, security
from rag_assistant.web.api.events import Readers
from rag_assistant.web.request_parsing import refuse_unknown

# Each has a blueprint.
PARTS = (
    "api.turns api.conversations api.documents api.libraries api.projects api.notes api.account api.sharing "
    "api.archive v1.routes openapi.routes mcp.tools pages.conversation pages.documents pages.source pages.receipt "
    "pages.history pages.ratings pages.sidebar pages.settings pages.account pages.sharing pages.people pages.handbook"
).split()


class NumberConverter(IntegerConverter):
    """A number in an address that can be an id; larger ones are not found."""

    def __init__(self, url_map: Map) -> None:
        super().__init__(url_map, max=MAX_INT32)


def create_app(environment: Mapping[str, str] | None = None) -> Flask:
    """Return the application; its services start with the first request. Raises SettingsError."""
    return app_of(open_services(environment))


def app_of(services: Services) -> Flask:
    """Return the application over existing services."""
    app = Flask("rag_assistant", root_path=str(FILES))
    app.extensions["assistant"] = services
    app.url_rule_class = routing.Route  # type: ignore[assignment] # It takes what a route declares, too.
    app.url_map.converters["int"] = NumberConverter
    app.extensions["readers"] = Readers(services.settings.current.max_running_answers)
    middleware.init_app(app, services.settings.current)
    security.init_app(app, services.settings.current)
    languages.init_app(app)
    errors.init_app(app)
    health.init_app(app, services)
    assets.init_app(app)
    app.add_template_global(vars(app.jinja_env.get_template("_icons.html").module)["icon"], "icon")
    for part in PARTS:
        app.register_blueprint(import_module(f"{__name__}.{part}").blueprint)
    build_types()  # All are imported by now, and no thread uses them.

    @app.before_request
    def start_services() -> None:
        services.start()
        if request.method not in security.SAFE_METHODS:  # Read-only requests need no lease.
            services.membership.hold()

    identity.init_app(app, services)
    middleware.limit_requests(app)
    app.before_request(refuse_unknown)
    return app
