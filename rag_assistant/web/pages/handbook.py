"""Pages without signing in: the documentation at /help, without scripts, and what makes the page an app."""

from functools import cache

from flask import Blueprint, Response, abort, current_app, render_template, request, url_for

from rag_assistant.settings.package_files import FILES
from rag_assistant.web.markdown.handbook import FRONT, Handbook, Page
from rag_assistant.web.routing import PUBLIC

blueprint = Blueprint("help_pages", __name__)
# W3C, Web Application Manifest.
MANIFEST_TYPE = "application/manifest+json"
MAX_AGE_SECONDS = 3600
MAX_QUERY_CHARS = 200


@cache
def handbook() -> Handbook:
    """Return the documentation, whose files are located once."""
    return Handbook(FILES)


@cache
def _drawn(name: str, script_root: str) -> Page:  # noqa: ARG001 - its links begin with it
    return handbook().page(name, _address)


def _address(name: str) -> str:
    if name == FRONT:
        return url_for("help_pages.front")
    return url_for("help_pages.page", name=name.removesuffix(".md"))


@blueprint.get("/help", policy=PUBLIC)
def front() -> str:
    """Show the start page, or search results for ``q``."""
    return _shown(FRONT, request.args.get("q", "").strip()[:MAX_QUERY_CHARS])


@blueprint.get("/help/<path:name>", policy=PUBLIC)
def page(name: str) -> str | Response:
    """Show a file of the documentation, or one of its pictures."""
    if f"{name}.md" in handbook().names:
        return _shown(f"{name}.md")
    if name not in handbook().names or name.endswith(".md"):
        abort(404)
    picture = Response((handbook().root / name).read_bytes(), content_type="image/png")
    picture.cache_control.max_age = MAX_AGE_SECONDS
    return picture


def _shown(name: str, query: str = "") -> str:
    root = url_for("help_pages.front")
    guide = sorted(one for one in handbook().names if one.startswith("docs/guide/"))
    return render_template(
        "help.html",
        page=_drawn(name, root),
        guide=[(_address(one), _drawn(one, root).title, one == name) for one in guide],
        query=query,
        sections=[(f"{_address(one.name)}#{one.anchor}", one) for one in handbook().search(query)],
        start=url_for("pages.start"),
        search=root,
        front=url_for("help_pages.front") if name != FRONT else None,
    )


@blueprint.get("/manifest.webmanifest", policy=PUBLIC)
def manifest() -> Response:
    """Return the web app manifest."""
    return Response(render_template("manifest.webmanifest"), content_type=MANIFEST_TYPE)


@blueprint.get("/favicon.ico", policy=PUBLIC)
def favicon() -> Response:
    """Return the icon for pages that name none, such as API responses."""
    return current_app.send_static_file("icon.svg")


@blueprint.get("/sw.js", policy=PUBLIC)
def service_worker() -> Response:
    """Return the service worker, whose scope is limited to paths below its own."""
    response = current_app.send_static_file("sw.js")
    response.headers["Cache-Control"] = "no-cache"
    return response


@blueprint.get("/offline", policy=PUBLIC)
def offline() -> str:
    """Show the page that a browser keeps for when the server can't be reached."""
    return render_template("offline.html")
