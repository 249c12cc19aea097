"""Host and origin checks, body limits, and security headers."""

from typing import Any

from flask import Flask, Response, current_app, request

from rag_assistant.records.errors import MalformedBody, RequestRefused
from rag_assistant.settings.schema import Settings
from rag_assistant.web.routing import API

SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})
OWN_NAMES = ("127.0.0.1", "localhost")
LOOPBACK = ("127.0.0.1", "::1")
MAX_BODY_BYTES = 1_000_000
MAX_FORM_FIELD_BYTES = 500_000
MAX_FORM_PARTS = 20

# W3C, Content Security Policy Level 3, with Trusted Types: nothing inline, nothing from elsewhere. HTML enters the page
# at one place only, through the policy "app", and so does the address of the service worker.
CONTENT_SECURITY_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; font-src 'self'; connect-src 'self'; "
    "manifest-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'; "
    "require-trusted-types-for 'script'; trusted-types app"
)
HEADERS = {
    "Content-Security-Policy": CONTENT_SECURITY_POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), microphone=(), geolocation=()",
}


def config_of(settings: Settings) -> dict[str, Any]:
    """Return Flask's configuration: who may send requests, and how large they may be."""
    return {
        "CORS_ORIGINS": settings.cors_origins,
        "TRUSTED_HOSTS": [*OWN_NAMES, settings.host.lower(), *settings.allowed_hosts],
        "MAX_CONTENT_LENGTH": MAX_BODY_BYTES,
        "MAX_FORM_MEMORY_SIZE": MAX_FORM_FIELD_BYTES,
        "MAX_FORM_PARTS": MAX_FORM_PARTS,
    }


def init_app(app: Flask) -> None:
    """Refuse foreign hosts, foreign origins and huge bodies on every route, and add the security headers."""
    app.before_request(refuse_no_host)
    app.before_request(refuse_foreign_pages)
    app.before_request(answer_preflight)
    app.after_request(add_headers)


def refuse_no_host() -> None:
    """Refuse a request without a host (RFC 9112, section 3.2), or with two ports."""
    host = request.headers.get("Host")
    if not host:
        raise MalformedBody("The request names no host: the header Host is missing.")
    if host.rpartition("]")[2].count(":") > 1:
        raise MalformedBody("The header Host names more than one port.")


def refuse_foreign_pages() -> None:
    """Refuse an unsafe request that a browser sent for another site's page.

    With every such request, browsers send Sec-Fetch-Site or at least Origin; other programs send neither.
    """
    if request.method in SAFE_METHODS or named_origin():
        return
    headers = request.headers
    site, origin = headers.get("Sec-Fetch-Site"), headers.get("Origin")
    if site is not None:
        ours = site in ("same-origin", "none")
    else:
        ours = origin is None or origin == request.host_url.rstrip("/")
    if not ours:
        raise RequestRefused("Cross-origin requests are not allowed: this one came from another site.")


def is_from_this_machine() -> bool:
    """Return whether a request comes from this machine, to its own name and without a proxy."""
    forwarded = any(name in request.headers for name in ("Forwarded", "X-Forwarded-For", "X-Real-IP", "Via"))
    return not forwarded and request.remote_addr in LOOPBACK and request.host.partition(":")[0] in OWN_NAMES


def named_origin() -> str | None:
    """Return the origin of an allowed cross-origin request; those with cookies aren't allowed."""
    origin = request.headers.get("Origin")
    named = origin in current_app.config["CORS_ORIGINS"] and request.path.startswith(API) and not request.cookies
    return origin if named else None


def answer_preflight() -> Response | None:
    """Answer a CORS preflight request (WHATWG Fetch, section 3.2.5)."""
    asks = request.method == "OPTIONS" and "Access-Control-Request-Method" in request.headers
    return Response(status=204) if asks and named_origin() else None


def add_headers(response: Response) -> Response:
    """Add the security headers, and prevent caching of personal data."""
    for name, value in HEADERS.items():
        response.headers.setdefault(name, value)
    if current_app.config["CORS_ORIGINS"]:
        response.vary.add("Origin")
    if origin := named_origin():
        response.headers["Access-Control-Allow-Origin"] = origin
        response.headers["Access-Control-Allow-Methods"] = "GET, POST, PUT, PATCH, DELETE"
        response.headers["Access-Control-Allow-Headers"] = request.headers.get("Access-Control-Request-Headers", "")
        response.headers["Access-Control-Expose-Headers"] = "*"
    if request.endpoint != "static":
        response.headers.setdefault("Cache-Control", "no-store")
    return response
