"""What lets a browser install the page as an app, and show a page of ours where the server cannot be reached."""

from flask import Blueprint, Response, current_app, render_template

from rag_assistant.web.routing import PUBLIC

blueprint = Blueprint("installable", __name__)
# W3C, Web Application Manifest.
MANIFEST_TYPE = "application/manifest+json"


@blueprint.get("/manifest.webmanifest", policy=PUBLIC)
def manifest() -> Response:
    """Say under which name and with which icon the page is installed."""
    return Response(render_template("manifest.webmanifest"), content_type=MANIFEST_TYPE)


@blueprint.get("/favicon.ico", policy=PUBLIC)
def favicon() -> Response:
    """Return the icon to a browser that shows what names none, such as an answer of the API."""
    return current_app.send_static_file("icon.svg")


@blueprint.get("/sw.js", policy=PUBLIC)
def service_worker() -> Response:
    """Return the service worker, which may only care for what lies below its own address."""
    response = current_app.send_static_file("sw.js")
    response.headers["Cache-Control"] = "no-cache"
    return response


@blueprint.get("/offline", policy=PUBLIC)
def offline() -> str:
    """Show what a browser keeps for when the server cannot be reached."""
    return render_template("offline.html")
