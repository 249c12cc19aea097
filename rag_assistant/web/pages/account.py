"""Signing in and out, also with an OpenID Connect provider; and a person's own account: password, sessions, API tokens,
and what is linked with it.

A form can't lead to another site (form-action in web/security.py), so to a provider it continues with a link.
"""

from __future__ import annotations

import json
import secrets
from typing import TYPE_CHECKING, Any

from flask import Blueprint, Response, make_response, render_template, request, url_for

from rag_assistant.accounts.admission import SIGN_IN_OVER
from rag_assistant.accounts.passwords import MIN_CHARS
from rag_assistant.records import ABILITIES
from rag_assistant.records.errors import AssistantError, InvalidRequest, NoProvider, NotAllowed, SignInFailed
from rag_assistant.records.validation import spells_number
from rag_assistant.web.api.account import limits_data
from rag_assistant.web.errors import page_with_error
from rag_assistant.web.forms import errors_on, to_address, to_page
from rag_assistant.web.identity import (
    SESSION,
    actor,
    asked_from,
    cookie_name,
    identity,
    proxied,
    signed_in,
    with_cookie,
    with_session,
    without_cookie,
)
from rag_assistant.web.pages.frame import frame
from rag_assistant.web.routing import OWN_ACCOUNT, PUBLIC, services, whole_services

if TYPE_CHECKING:
    from rag_assistant.accounts.oidc import OpenIdProvider


blueprint = Blueprint("account_pages", __name__)
# What a browser remembers of a sign-in at a provider.
COOKIE = "sign-in"
ATTEMPT_SECONDS = 600
MAX_COOKIE_CHARS = 3000
# Where a proxy signs people in, a password would be a second way.
WITH_PASSWORDS = ("account_pages.sign_in", "account_pages.choose_password", "account_pages.keep_password")


@blueprint.before_request
def refuse_passwords() -> None:
    """Refuse passwords where a proxy signs people in."""
    if request.endpoint in WITH_PASSWORDS and proxied(whole_services()):
        raise NotAllowed("You sign in at the proxy in front of this server, not here.")


def login_page(error: AssistantError | None = None) -> str:
    """Return the sign-in page with what was typed, and where it leads."""
    here, name = proxied(whole_services()), request.form.get("name")
    return render_template(
        "login.html", error=error, next=next_address(), name=name, provider=_provider_label(), proxied=here
    )


@blueprint.get("/login", policy=PUBLIC)
def login() -> Response:
    """Show the form to sign in."""
    if identity().person is not None or not whole_services().accounts.any():
        return to_address(next_address())
    return make_response(login_page())


@blueprint.post("/login", policy=PUBLIC)
@errors_on(login_page)
def sign_in() -> Response:
    """Sign in with a name and a password, in a new session."""
    name, password = request.form.get("name", ""), request.form.get("password", "")
    secret, _ = whole_services().accounts.sign_in(name, password, *asked_from())
    # The browser's previous session ends, whoever it belonged to.
    whole_services().accounts.sign_out(identity())
    return with_session(to_address(next_address()), secret)


@blueprint.post("/logout", policy=OWN_ACCOUNT)
def sign_out() -> Response:
    """End this browser's session; if a provider began it, say how to sign out there, too."""
    session, provider = identity().session, whole_services().single_sign_on.provider
    whole_services().accounts.sign_out(identity())
    if session is not None and session.identity_id is not None and provider is not None:
        url = provider.logout_url(url_for("account_pages.login", _external=True))
        if url is not None:
            page = render_template("signed_out.html", url=url, label=provider.label)
            return without_cookie(make_response(page), SESSION)
    return without_cookie(to_page("account_pages.login"), SESSION)


def setup_page(error: AssistantError | None = None) -> str:
    """Return the form for the first account, with what was typed."""
    return render_template("setup.html", error=error, name=request.form.get("name"), min_chars=MIN_CHARS)


@blueprint.get("/setup", policy=PUBLIC)
def setup() -> Response:
    """Show the form for creating the first account."""
    return make_response(setup_page()) if whole_services().setup.is_open else to_page("pages.start")


@blueprint.post("/setup", policy=PUBLIC)
@errors_on(setup_page)
def make_first() -> Response:
    """Create the first account with the code from the log, and sign in."""
    if not whole_services().setup.is_open:
        return to_page("pages.start")
    fields = {name: request.form.get(name, "") for name in ("code", "name", "password")}
    whole_services().setup.make_first(**fields, address=asked_from()[0])
    secret, _ = whole_services().accounts.sign_in(fields["name"], fields["password"], *asked_from())
    return with_session(to_page("pages.start"), secret)


def password_page(error: AssistantError | None = None) -> str:
    """Return the form behind a one-time link. Raises LinkOver."""
    link = request.values.get("link", "")
    person = whole_services().accounts.credentials.link(link)
    return render_template(
        "choose_password.html", error=error, link=link, person=person, min_chars=MIN_CHARS, provider=_provider_label()
    )


@blueprint.get("/choose-password", policy=PUBLIC)
@errors_on(login_page)
def choose_password() -> Response:
    """Show the form behind a one-time link."""
    return make_response(password_page())


@blueprint.post("/choose-password", policy=PUBLIC)
@errors_on(login_page)
@errors_on(password_page)
def keep_password() -> Response:
    """Set the password chosen through a one-time link, and sign in."""
    link, password = request.form.get("link", ""), request.form.get("password", "")
    secret = whole_services().accounts.use_link(link, password, *asked_from())
    return with_session(to_page("pages.start"), secret)


@blueprint.get("/account", policy=OWN_ACCOUNT)
def account(
    error: AssistantError | None = None, secret: str | None = None, token_id: int | None = None, **_: int
) -> str:
    """Show the account, its sessions and tokens; ``secret`` is that of a new token."""
    person, session, limits = signed_in(), identity().session, services().limits
    return render_template(
        "account.html",
        person=person,
        sessions=whole_services().accounts.credentials.sessions_of(person.id),
        here=session.id if session else None,
        identities=whole_services().single_sign_on.identities.of_person(person.id),
        provider=_provider_label(),
        by_proxy=identity().by_proxy,
        proxy_logout_link=whole_services().settings.current.proxy_logout_link,
        tokens=whole_services().accounts.credentials.tokens_of(person.id),
        scopes=[ability for ability in ABILITIES if ability in person.abilities],
        limits=limits and limits_data(limits, services().settings.current),
        min_chars=MIN_CHARS,
        error=error,
        secret=secret,
        token_id=token_id,
        **frame(None),
    )


@blueprint.post("/account/password", policy=OWN_ACCOUNT)
@errors_on(account)
def change_password() -> Response:
    """Change the password and end all other sessions."""
    old, new = request.form.get("old", ""), request.form.get("new", "")
    whole_services().accounts.change_password(identity(), old, new, actor())
    return to_page("account_pages.account", done="password")


@blueprint.post("/account/sessions/<int:session_id>/end", policy=OWN_ACCOUNT)
def end_session(session_id: int) -> Response:
    """End a session in any browser."""
    whole_services().accounts.end_session(signed_in(), session_id, actor())
    return to_page("account_pages.account")


@blueprint.post("/account/sessions/end", policy=OWN_ACCOUNT)
def end_sessions() -> Response:
    """End all other sessions."""
    whole_services().accounts.end_other_sessions(identity(), actor())
    return to_page("account_pages.account")


@blueprint.post("/account/tokens", policy=OWN_ACCOUNT)
@errors_on(account)
def make_token() -> Response:
    """Create an API token and show it, once."""
    days = request.form.get("days", "")
    if days and not spells_number(days):
        raise InvalidRequest(f'days is "{days}"; it must be a whole number, or empty for no expiry.')
    name, scopes = request.form.get("name", ""), request.form.getlist("scopes")
    lifetime = int(days) if days else None
    secret, token = whole_services().accounts.make_token(signed_in(), name, scopes, lifetime, actor())
    return make_response(account(secret=secret, token_id=token.id))


@blueprint.post("/account/tokens/<int:token_id>/revoke", policy=OWN_ACCOUNT)
def revoke_token(token_id: int) -> Response:
    """Revoke an API token."""
    whole_services().accounts.revoke_token(signed_in(), token_id, actor())
    return to_page("account_pages.account")


def own_address(address: str) -> str:
    """Return the page to go to after signing in: only an address of ours."""
    ours = address.startswith("/") and not address.startswith(("//", "/\\")) and address.isprintable()
    root = request.script_root
    return f"{root}{address.removeprefix(root)}" if ours else url_for("pages.start")


def next_address() -> str:
    """Return where the request leads after signing in."""
    return own_address(request.values.get("next", ""))


def _provider_label() -> str | None:
    provider = whole_services().single_sign_on.provider
    return provider.label if provider else None


# --- an account at a provider


@blueprint.get("/login/provider", policy=PUBLIC)
@errors_on(login_page)
def begin() -> Response:
    """Send the browser to the provider to sign in."""
    if not whole_services().accounts.any():
        return to_page("pages.start")
    secret = secrets.token_urlsafe(32)
    response = to_address(_provider().authorization_url(secret, _redirect_uri()))
    return _remembering(response, secret, {"next": next_address()})


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
        purpose = _remembered()
        claims = _provider().claims(purpose["secret"], request.args, _redirect_uri())
        response = _linked(claims, purpose["person"]) if "person" in purpose else _signed_in(claims, purpose)
    except AssistantError as error:
        response = page_with_error(error, login_page(error) if identity().person is None else account(error))
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
    secret, provider = secrets.token_urlsafe(32), _provider()
    url = provider.authorization_url(secret, _redirect_uri())
    return _remembering(make_response(render_template("leave.html", url=url, label=provider.label)), secret, purpose)


def _provider() -> OpenIdProvider:
    provider = whole_services().single_sign_on.provider
    if provider is None:
        raise NoProvider
    return provider


def _redirect_uri() -> str:
    return url_for("account_pages.come_back", _external=True)


def _remembering(response: Response, secret: str, purpose: dict[str, Any]) -> Response:
    """Return a response that stores a sign-in in the browser, and nowhere else."""
    return with_cookie(response, COOKIE, json.dumps({"secret": secret} | purpose), ATTEMPT_SECONDS)


def _remembered() -> dict[str, Any]:
    """Return the secret of the browser's sign-in, and its purpose. Raises SignInFailed."""
    cookie = request.cookies.get(cookie_name(COOKIE), "")
    try:
        purpose = json.loads(cookie) if len(cookie) <= MAX_COOKIE_CHARS else None
    except (ValueError, RecursionError):
        purpose = None
    if not isinstance(purpose, dict) or not isinstance(purpose.get("secret"), str) or not purpose["secret"]:
        raise SignInFailed(SIGN_IN_OVER)
    return purpose
