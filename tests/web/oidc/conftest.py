"""A provider that does what a test tells it, and servers that know it."""

from __future__ import annotations

from collections.abc import Iterator
from ssl import SSLContext, create_default_context
from typing import TYPE_CHECKING

import pytest
from flask import Flask

from rag_assistant.web import create_app
from tests.testkit.people import add_person, quick_passwords
from tests.web.oidc.browser import Make

if TYPE_CHECKING:
    from tests.testkit.oidc_stub import StubProvider


@pytest.fixture(autouse=True)
def _quick() -> Iterator[None]:
    with quick_passwords():
        yield


@pytest.fixture
def provider() -> Iterator[StubProvider]:
    from tests.testkit.oidc_stub import StubProvider  # It needs what the extra oidc brings, which may be missing.

    made = StubProvider()
    yield made
    made.close()


@pytest.fixture(scope="session")
def certificates() -> SSLContext:
    """The authorities whose certificates count: to load them takes longer than most tests."""
    return create_default_context()


@pytest.fixture
def make(
    environment: dict[str, str],
    provider: StubProvider,
    certificates: SSLContext,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[Make]:
    """Makes a server that knows the provider, on which Ann is the administrator."""
    from tests.testkit.oidc_stub import CLIENT_ID, CLIENT_SECRET

    monkeypatch.setattr("httpx2.create_ssl_context", lambda: certificates)
    made: list[Flask] = []

    def _make(**settings: str) -> Flask:
        known = {
            "OIDC_ISSUER": provider.issuer,
            "OIDC_CLIENT_ID": CLIENT_ID,
            "OIDC_CLIENT_SECRET": CLIENT_SECRET,
            "OIDC_LABEL": "Stub",
            "OIDC_CREATE_ACCOUNTS": "true",
            "OIDC_ALLOWED_DOMAINS": '["*"]',
        }
        app = create_app(environment | known | settings)
        add_person(app.extensions["assistant"], "Ann", "admin")
        app.extensions["assistant"].start()
        made.append(app)
        return app

    yield _make
    for app in made:
        app.extensions["assistant"].close()
