"""Authentication: the only place where a request's cookie or token becomes a person."""

import re
from datetime import timedelta
from typing import Any, cast

from flask import Flask, Response, request, url_for

from rag_assistant.accounts.accounts import SESSION_LIFETIME, TOKEN_START, Actor
from rag_assistant.records import ALONE, NOBODY, Identity, Person
from rag_assistant.records.errors import MalformedBody, NotAllowed, NotSignedIn, StorageFailed, UnderMaintenance
from rag_assistant.services import Services
from rag_assistant.web.forms import to_page
from rag_assistant.web.routing import (
    ANTHROPIC,
    API,
    DOCUMENTS,
    IDENTITY,
    PUBLIC,
    SESSION_ONLY,
    Policy,
    policy_asked,
    services,
    whole_services,
)
from rag_assistant.web.security import SAFE_METHODS

SESSION = "session"
BEARER = "bearer "
NO_ACCOUNTS = "This needs an account, and this server has none."


def init_app(app: Flask) -> None:
    """Authenticate every request on every route."""

    @app.before_request
    def let_in() -> Response | None:
        whole, policy, endpoint = whole_services(), policy_asked(), request.endpoint
        # Monitoring must work while the database, which authenticates, hangs.
        must_not_wait = endpoint == "health.healthz" or (endpoint == "health.readyz" and whole.probe.state() != "ready")
        try:
            # A command in this process sets the identity; no header can (see cli/api.py).
            caller = request.environ.get(IDENTITY) or (NOBODY if must_not_wait else identify(whole))
        except (StorageFailed, NotAllowed):
            if policy != PUBLIC:
                raise
            caller = NOBODY  # Public routes, such as /readyz, report that the database is unreachable.
        request.environ[IDENTITY] = caller
        if caller is NOBODY and policy != PUBLIC:
            if not is_navigation():
                raise NotSignedIn
            if whole.setup.is_open:
                return to_page("account_pages.setup")
            return to_page("account_pages.login", next=request.full_path.rstrip("?"))
        refuse_beyond(caller, policy)
        changes_documents = policy == DOCUMENTS and request.method not in SAFE_METHODS
        if changes_documents and whole.settings.current.maintenance:
            raise UnderMaintenance
        return None

    app.context_processor(lambda: {"identity": identity()})


def identity() -> Identity:
    """Return the identity of the request; before authentication, nobody's."""
    return cast(Identity, request.environ.get(IDENTITY, NOBODY))


def signed_in() -> Person:
    """Return the signed-in person. Raises NotAllowed."""
    person = identity().person
    if person is None:
        raise NotAllowed(NO_ACCOUNTS)
    return person


def actor() -> Actor:
    """Return the person asking, for the audit log."""
    person = identity().person
    return Actor(person.name if person else "somebody", request.remote_addr)


def asked_from() -> tuple[str, str]:
    """Return the address of the client, and the browser's name."""
    return request.remote_addr or "", request.headers.get("User-Agent", "")


def note_for_audit(action: str, subject: str) -> None:
    """Record an action in the audit log, if there are accounts."""
    if identity().person is not None:
        services().accounts.note(actor(), action, subject)


def identify(whole: Services) -> Identity:
    """Return the identity of a cookie or token. Raises MalformedBody for both, NotSignedIn for an invalid token."""
    if not whole.accounts.any():
        return NOBODY if whole.setup.is_open else ALONE
    if proxied(whole):
        return by_proxy(whole)
    token, cookie = bearer_token(), request.cookies.get(cookie_name(SESSION))
    if token is not None:
        if cookie is not None:
            raise MalformedBody("The request has a cookie and a token. Send only one of them.")
        return whole.accounts.by_token(token)
    return (whole.accounts.by_session(cookie) if cookie else None) or NOBODY


def bearer_token() -> str | None:
    """Return the token of a request, which may be empty; ``None`` if it has none."""
    authorization = request.headers.get("Authorization", "")
    if authorization.lower().startswith(BEARER):
        return authorization[len(BEARER) :].strip()
    return request.headers.get("X-Api-Key") if request.path.startswith(ANTHROPIC) else None


def proxied(whole: Services) -> bool:
    """Return whether a proxy signs people in, so that nobody signs in here."""
    return whole.settings.current.proxy_user_header is not None


def by_proxy(whole: Services) -> Identity:
    """Return the identity given by a proxy, or by a token. Raises NotAllowed, MalformedBody, NotSignedIn.

    The header is removed from requests that don't come from the proxy (middleware.py). A proxy may send its own token.
    """
    settings = whole.settings.current
    name = _told(settings.proxy_user_header)
    secret = bearer_token() or ""
    if secret.startswith(TOKEN_START) or (secret and not name):
        if name:
            raise MalformedBody(
                "The request has a token and the name of a person from the proxy. Send only one of them."
            )
        return whole.accounts.by_token(secret)
    if not name:
        return NOBODY
    groups = frozenset(filter(None, (one.strip() for one in re.split(r"[,|]", _told(settings.proxy_groups_header)))))
    person = whole.single_sign_on.by_proxy(name, groups, request.remote_addr)
    return Identity(person, person.abilities, by_proxy=True)


def _told(header: str | None) -> str:
    """Return the text of a header, which is sent once. Servers decode Latin-1, proxies send UTF-8."""
    value = request.headers.get(header, "") if header else ""
    if header and header.lower() in request.headers.get("X-Repeated", "").split(","):
        raise NotAllowed(f"The proxy's header {header} was sent more than once.")
    try:
        return value.encode("latin-1").decode().strip()
    except UnicodeError:
        raise NotAllowed(f"The proxy's header {header} is not valid UTF-8.") from None


def refuse_beyond(caller: Identity, policy: Policy) -> None:
    """Refuse requests that the caller may not make. Raises NotAllowed."""
    if policy == PUBLIC:
        return
    if policy.ability not in caller.abilities:
        for_their_role = caller.person is not None and policy.ability in caller.person.abilities
        kept_for = f'tokens with the scope "{policy.ability}"' if for_their_role else "an administrator"
        raise NotAllowed(f"Only {kept_for} can do this.")
    if (policy.person or policy.session) and caller.person is None:
        raise NotAllowed(NO_ACCOUNTS)
    if policy.session and caller.session is None and not caller.by_proxy:
        raise NotAllowed(SESSION_ONLY)


def is_navigation() -> bool:
    """Return whether a browser requests a page, so that it can be redirected."""
    wanted = request.headers.get("Sec-Fetch-Mode", "navigate") == "navigate"
    is_api = request.path.startswith(API)
    return request.method == "GET" and wanted and not is_api and "text/html" in request.headers.get("Accept", "")


def cookie_name(name: str) -> str:
    """Return a cookie's full name. With __Host-, no other host and no plain connection can set it (RFC 6265bis)."""
    return f"__Host-{name}" if request.is_secure else name


def _cookie_options() -> dict[str, Any]:
    """Return how a cookie is kept: for HTTP only; links from other sites send it. __Host- allows no other path."""
    path = "/" if request.is_secure else url_for("pages.start")
    return {"path": path, "secure": request.is_secure, "httponly": True, "samesite": "Lax"}


def with_session(response: Response, secret: str) -> Response:
    """Return a response that sets the session cookie."""
    return with_cookie(response, SESSION, secret, SESSION_LIFETIME)


def with_cookie(response: Response, name: str, value: str, max_age: timedelta | int) -> Response:
    """Return a response that sets a cookie."""
    response.set_cookie(cookie_name(name), value, max_age, **_cookie_options())
    return response


def without_cookie(response: Response, name: str) -> Response:
    """Return a response that deletes such a cookie."""
    response.delete_cookie(cookie_name(name), **_cookie_options())
    return response
