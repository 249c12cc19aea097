"""Lets a browser install the page as an app, and show an offline page."""

from flask import Blueprint, Response, current_app, render_template

from rag_assistant.web.routing import PUBLIC

blueprint = Blueprint("installable", __name__)
# W3C, Web Application Manifest.
MANIFEST_TYPE = "application/manifest+json"


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
