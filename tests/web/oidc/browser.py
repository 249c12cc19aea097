"""Signing in with the stub provider, as a browser does, and what came of it."""

from __future__ import annotations

import html
import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from flask import Flask
from flask.testing import FlaskClient
from werkzeug.test import TestResponse

from rag_assistant.services import Services
from tests.web.conftest import PAGE

if TYPE_CHECKING:
    from tests.testkit.oidc_stub import StubProvider

Make = Callable[..., Flask]


def begin(client: FlaskClient, asked: str = "", **more: Any) -> str:
    """Begin a sign-in and return where the browser is sent."""
    response = client.get("/login/provider", query_string={"next": asked} if asked else {}, headers=PAGE, **more)
    assert response.status_code == 303, response.text
    return response.headers["Location"]


def come_back(client: FlaskClient, answer: dict[str, str], **more: Any) -> TestResponse:
    return client.get(f"/login/provider/callback?{urlencode(answer)}", headers=PAGE, **more)


def sign_in(client: FlaskClient, provider: StubProvider, asked: str = "") -> TestResponse:
    return come_back(client, provider.authorize(begin(client, asked)))


def names(app: Flask) -> list[str]:
    services: Services = app.extensions["assistant"]
    return [one.name for one in services.accounts.people.all()]


def audit(app: Flask) -> str:
    services: Services = app.extensions["assistant"]
    return "\n".join(f"{one.actor}: {one.action}: {one.subject}" for one in services.accounts.log.newest(100))


def link(client: FlaskClient, provider: StubProvider) -> TestResponse:
    """Link the provider's user with whoever is signed in."""
    page = client.post("/account/identities", headers=PAGE)
    assert page.status_code == 200, page.text
    return come_back(client, provider.authorize(href_of(page.text)))


def href_of(page: str) -> str:
    found = re.search(r'href="(http[^"]+/authorize\?[^"]+)"', page)
    assert found is not None, page
    return html.unescape(found[1])
