"""Flask: the API, the event streams and the pages. Nothing below this folder knows HTTP."""

from collections.abc import Mapping
from functools import partial
from importlib import import_module

from flask import Flask, request
from werkzeug.routing import IntegerConverter, Map

from rag_assistant.records import MAX_INT32
from rag_assistant.records.base import build_types
from rag_assistant.services import Services, open_services
from rag_assistant.settings.package_files import FILES
from rag_assistant.web import assets, errors, identity, languages, middleware, routing, security
from rag_assistant.web.api.events import Readers
from rag_assistant.web.request_parsing import refuse_unknown

# Each has a blueprint.
PARTS = (
    "health api.turns api.conversations api.documents api.libraries api.projects api.notes api.account api.sharing "
    "api.archive v1.routes openapi.routes mcp.tools pages.conversation pages.documents pages.source pages.receipt "
    "pages.history pages.sidebar pages.settings pages.account pages.sharing pages.people pages.handbook "
    "api.grids pages.grids"
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
    app, settings = routes(), services.settings.current
    app.extensions |= {"assistant": services, "readers": Readers(settings.max_running_answers)}
    app.config.update(security.config_of(settings))
    entry = middleware.Entry(partial(Flask.wsgi_app, app), settings)
    app.wsgi_app = middleware.Occupancy(entry)  # type: ignore[method-assign, assignment]
    return app


def routes() -> Flask:
    """Return all routes, which find their services with each request."""
    app = Flask("rag_assistant", root_path=str(FILES))
    app.url_rule_class = routing.Route  # type: ignore[assignment] # It takes what a route declares, too.
    app.url_map.converters["int"] = NumberConverter
    for part in (middleware, security, languages, errors, assets):
        part.init_app(app)
    app.add_template_global(vars(app.jinja_env.get_template("_icons.html").module)["icon"], "icon")
    for name in PARTS:
        app.register_blueprint(import_module(f"{__name__}.{name}").blueprint)
    build_types()  # All are imported by now, and no thread uses them.
    app.before_request(start_services)
    identity.init_app(app)
    middleware.limit_requests(app)
    app.before_request(refuse_unknown)
    return app


def start_services() -> None:
    services = routing.whole_services()
    services.start()
    if request.method not in security.SAFE_METHODS:  # Read-only requests need no lease.
        services.membership.hold()
