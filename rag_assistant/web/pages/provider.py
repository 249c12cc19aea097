"""Signing in with an OpenID Connect provider, and linking its account with one's own.

A form can't lead to another site (form-action in web/security.py), so it continues with a link.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from flask import Blueprint, Response, make_response, render_template, request, url_for

from rag_assistant.accounts.oidc_attempt import OVER, Attempt
from rag_assistant.records.errors import AssistantError, NoProvider, SignInFailed
from rag_assistant.web.errors import page_with_error
from rag_assistant.web.forms import errors_on, to_address, to_page
from rag_assistant.web.identity import (
    actor,
    asked_from,
    cookie_name,
    identity,
    signed_in,
    with_cookie,
    with_session,
    without_cookie,
)
from rag_assistant.web.pages.account import account, login_page, next_address, own_address
from rag_assistant.web.routing import OWN_ACCOUNT, PUBLIC, whole_services

if TYPE_CHECKING:
    from rag_assistant.accounts.oidc import OpenIdProvider

blueprint = Blueprint("provider_pages", __name__)

COOKIE = "sign-in"
ATTEMPT_SECONDS = 600
MAX_COOKIE_CHARS = 3000


@blueprint.get("/login/provider", policy=PUBLIC)
@errors_on(login_page)
def begin() -> Response:
    """Send the browser to the provider to sign in."""
    if not whole_services().accounts.any():
        return to_page("pages.start")
    attempt = Attempt.begin()
    response = to_address(_provider().authorization_url(attempt, _redirect_uri()))
    return _remembering(response, attempt, {"next": next_address()})


@blueprint.post("/login/provider", policy=PUBLIC)
@errors_on(login_page)
def begin_with_invitation() -> Response:
    """Start linking through a one-time link, instead of choosing a password."""
    invitation = request.form.get("link", "")
    whole_services().accounts.credentials.link(invitation)
    return _led_on({"invitation": invitation})


@blueprint.post("/account/identities", policy=OWN_ACCOUNT)
@errors_on(account)
def begin_link() -> Response:
    """Start linking the provider's account with the signed-in person's."""
    return _led_on({"person": signed_in().id})


@blueprint.get("/login/provider/callback", policy=PUBLIC)
def come_back() -> Response:
    """Handle the provider's response: sign in, or link."""
    if not whole_services().accounts.any():
        return to_page("pages.start")
    try:
        attempt, purpose = _remembered()
        claims = _provider().claims(attempt, request.args, _redirect_uri())
        response = _linked(claims, purpose["person"]) if "person" in purpose else _signed_in(claims, purpose)
    except AssistantError as error:
        page = login_page(error) if identity().person is None else account(error)
        response = page_with_error(error, page)
    # Whatever the result, a response counts once.
    return without_cookie(response, COOKIE)


@blueprint.post("/account/identities/<int:identity_id>/unlink", policy=OWN_ACCOUNT)
@errors_on(account)
def unlink(identity_id: int) -> Response:
    """Unlink a provider's account."""
    session = identity().session
    whole_services().single_sign_on.unlink(signed_in(), identity_id, session.id if session else None, actor())
    return to_page("account_pages.account")


def _signed_in(claims: dict[str, Any], purpose: dict[str, Any]) -> Response:
    sign_on = whole_services().single_sign_on
    if "invitation" in purpose:
        secret, _ = sign_on.link_invited(str(purpose["invitation"]), claims, *asked_from())
    else:
        secret, _ = sign_on.sign_in(claims, *asked_from())
    # The browser's previous session ends, whoever it belonged to.
    whole_services().accounts.sign_out(identity())
    return with_session(to_address(own_address(str(purpose.get("next", "")))), secret)


def _linked(claims: dict[str, Any], person_id: int) -> Response:
    person = identity().person
    if person is None or person.id != person_id:
        raise SignInFailed("You were signed out meanwhile. Sign in, and link the account again.")
    whole_services().single_sign_on.link(person, claims, actor())
    return to_page("account_pages.account")


def _led_on(purpose: dict[str, Any]) -> Response:
    attempt = Attempt.begin()
    provider = _provider()
    url = provider.authorization_url(attempt, _redirect_uri())
    return _remembering(make_response(render_template("leave.html", url=url, label=provider.label)), attempt, purpose)


def _provider() -> OpenIdProvider:
    provider = whole_services().single_sign_on.provider
    if provider is None:
        raise NoProvider
    return provider


def _redirect_uri() -> str:
    return url_for("provider_pages.come_back", _external=True)


def _remembering(response: Response, attempt: Attempt, purpose: dict[str, Any]) -> Response:
    """Return a response that stores an attempt in the browser, and nowhere else."""
    return with_cookie(response, COOKIE, json.dumps({"secret": attempt.secret} | purpose), ATTEMPT_SECONDS)


def _remembered() -> tuple[Attempt, dict[str, Any]]:
    """Return the browser's attempt. Raises SignInFailed."""
    cookie = request.cookies.get(cookie_name(COOKIE), "")
    try:
        purpose = json.loads(cookie) if len(cookie) <= MAX_COOKIE_CHARS else None
    except (ValueError, RecursionError):
        purpose = None
    if not isinstance(purpose, dict) or not isinstance(purpose.get("secret"), str) or not purpose["secret"]:
        raise SignInFailed(OVER)
    return Attempt(purpose["secret"]), purpose
