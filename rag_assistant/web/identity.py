"""Who asks: the one place where a request's cookie or token becomes a person."""

from __future__ import annotations

from typing import Any, cast

from flask import Flask, Response, redirect, request, url_for

from rag_assistant.accounts.accounts import SESSION_LIFETIME, Actor
from rag_assistant.errors import MalformedBody, NotAllowed, NotSignedIn, StorageFailed
from rag_assistant.records import ALONE, NOBODY, Identity
from rag_assistant.web.policy import POLICIES, PUBLIC, SESSION_ONLY, Policy
from rag_assistant.web.services import IDENTITY, Services, services

SECURE_COOKIE = "__Host-session"
PLAIN_COOKIE = "session"
BEARER = "bearer "


def init_app(app: Flask, whole: Services) -> None:
    """Let nobody in who may not come in, on every route."""

    @app.before_request
    def let_in() -> Response | None:
        policy = POLICIES.get(request.endpoint or "", PUBLIC)  # Where there is nothing, it is so for everybody alike.
        try:
            found = identify(whole)
        except StorageFailed:
            if policy != PUBLIC:
                raise
            found = NOBODY  # What everybody may ask, such as /readyz, says that the database is away.
        request.environ[IDENTITY] = found
        if found is NOBODY and policy != PUBLIC:
            if not is_navigation():
                raise NotSignedIn
            if whole.setup.is_open:
                return to_page("account_pages.setup")
            return to_page("account_pages.login", next=request.full_path.rstrip("?"))
        refuse_beyond(found, policy)
        return None

    app.context_processor(lambda: {"identity": identity()})


def identity() -> Identity:
    """Return who asks. Before that is known it is nobody."""
    return cast(Identity, request.environ.get(IDENTITY, NOBODY))


def actor() -> Actor:
    """Return who asks, as the audit log names them."""
    person = identity().person
    return Actor(person.name if person else "somebody", request.remote_addr)


def note_for_audit(action: str, subject: str) -> None:
    """Note what somebody did, where there are accounts."""
    if identity().person is not None:
        services().accounts.note(actor(), action, subject)


def identify(whole: Services) -> Identity:
    """Return who asks by their cookie or token. Raises MalformedBody if they show both, NotSignedIn for a bad token."""
    if not whole.accounts.any():
        return NOBODY if whole.setup.is_open else ALONE
    authorization = request.headers.get("Authorization", "")
    cookie = request.cookies.get(cookie_name())
    if authorization.lower().startswith(BEARER):
        if cookie is not None:
            raise MalformedBody("The request has a cookie and a token. Send one of them.")
        found = whole.accounts.by_token(authorization[len(BEARER) :].strip())
        if found is None:
            raise NotSignedIn
        return found
    return (whole.accounts.by_session(cookie) if cookie else None) or NOBODY


def refuse_beyond(found: Identity, policy: Policy) -> None:
    """Refuse what somebody may not do. Raises NotAllowed."""
    if policy == PUBLIC:
        return
    if policy.ability not in found.abilities:
        kept_for = "an administrator" if policy.ability == "admin" else f'somebody whose token has "{policy.ability}"'
        raise NotAllowed(f"This is for {kept_for}.")
    if policy.person and found.person is None:
        raise NotAllowed("There is nobody to share with: there are no accounts.")
    if policy.session and found.session is None:
        raise NotAllowed(SESSION_ONLY)


def is_navigation() -> bool:
    """Tell whether a browser asks for a page, which can be led to another one."""
    wanted = request.headers.get("Sec-Fetch-Mode", "navigate") == "navigate"
    programs = request.path.startswith(("/api/", "/v1/"))
    return request.method == "GET" and wanted and not programs and "text/html" in request.headers.get("Accept", "")


def to_page(endpoint: str, **arguments: Any) -> Response:
    """Return what leads to a page of ours."""
    return cast(Response, redirect(url_for(endpoint, **arguments), 303))


def cookie_name() -> str:
    """Return the session's cookie. With __Host-, no other host and no plain connection can set it (RFC 6265bis)."""
    return SECURE_COOKIE if request.is_secure else PLAIN_COOKIE


def with_session(response: Response, secret: str) -> Response:
    """Return a response that gives the browser a session."""
    response.set_cookie(
        cookie_name(),
        secret,
        max_age=SESSION_LIFETIME,
        secure=request.is_secure,
        httponly=True,
        samesite="Lax",
        path="/" if request.is_secure else url_for("pages.start"),
    )
    return response


def without_session(response: Response) -> Response:
    """Return a response that takes the session from the browser."""
    path = "/" if request.is_secure else url_for("pages.start")
    response.delete_cookie(cookie_name(), path=path, secure=request.is_secure, httponly=True, samesite="Lax")
    return response
