"""Signing in with a provider that is not ours: npm's oidc-provider, which is certified by the OpenID Foundation."""

import html
import json
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("authlib", reason="pip install -e '.[oidc]'")

import httpx2
from flask.testing import FlaskClient

from rag_assistant.services import Services
from rag_assistant.web import create_app
from tests.testkit.oidc_stub import CLIENT_ID, CLIENT_SECRET
from tests.testkit.people import add_person, quick_passwords
from tests.web.conftest import PAGE

PROJECT = Path(__file__).resolve().parents[2]
MODULES = PROJECT / ".venv-oidc"
NODE = shutil.which("node")
pytestmark = pytest.mark.skipif(
    NODE is None or not (MODULES / "node_modules" / "oidc-provider").exists(),
    reason="node or oidc-provider is missing: make .venv-oidc/ready",
)
CLIENT: dict[str, Any] = {
    "client_id": CLIENT_ID,
    "client_secret": CLIENT_SECRET,
    "redirect_uris": ["http://localhost/login/provider/callback"],
    "post_logout_redirect_uris": ["http://localhost/login"],
}


@contextmanager
def provider_with(client: dict[str, Any]) -> Iterator[str]:
    """Run a provider that knows one client, and give its issuer."""
    command = [
        str(NODE),
        str(PROJECT / "tests" / "testkit" / "oidc_provider.mjs"),
        str(MODULES),
        json.dumps(CLIENT | client),
    ]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        # Whatever it says about the version of node comes on the same way.
        yield next(line.strip() for line in process.stdout if line.startswith("http://"))
    finally:
        process.stdin.close()
        process.wait(10)
        process.stdout.close()


def through_the_forms(url: str, name: str) -> str:
    """Sign in and agree on the provider's own pages, and return where these lead back to."""
    with httpx2.Client() as browser:
        response = browser.get(url)
        for _ in range(10):
            if response.is_redirect:
                to = str(response.next_request.url) if response.next_request else ""
                if to.startswith("http://localhost/"):
                    return to
                response = browser.get(to)
                continue
            form = re.search(r'<form[^>]+action="([^"]+)"', response.text)
            assert form is not None, response.text
            fields = dict(re.findall(r'<input[^>]*name="([^"]+)"[^>]*value="([^"]*)"', response.text))
            fields |= {"login": name, "password": "any"} if 'name="login"' in response.text else {}
            fields |= {"logout": "yes"} if 'name="logout"' in response.text else {}
            response = browser.post(str(response.url.join(html.unescape(form[1]))), data=fields)
    raise AssertionError("it led nowhere")


@pytest.fixture
def signs_in(environment: dict[str, str]) -> Iterator[Callable[..., FlaskClient]]:
    """Signs somebody in on a new server, and returns their client."""
    opened: list[Services] = []

    def _signs_in(issuer: str, name: str, **settings: str) -> FlaskClient:
        known = {"OIDC_ISSUER": issuer, "OIDC_CLIENT_ID": CLIENT_ID, "OIDC_CLIENT_SECRET": CLIENT_SECRET}
        open_to = {
            "OIDC_CREATE_ACCOUNTS": "true",
            "OIDC_ALLOWED_DOMAINS": '["example.org"]',
            "OIDC_ALLOWED_GROUPS": '["assistant"]',
            "OIDC_SCOPES": '["openid", "profile", "email", "groups"]',
        }
        app = create_app(environment | known | open_to | settings)
        services: Services = app.extensions["assistant"]
        opened.append(services)
        with quick_passwords():
            add_person(services, "Ann", "admin")
        client = app.test_client()
        begun = client.get("/login/provider", query_string={"next": "/documents"}, headers=PAGE)
        back = through_the_forms(begun.headers["Location"], name)
        answered = client.get(back, headers=PAGE)
        assert (answered.status_code, answered.headers.get("Location")) == (303, "/documents"), answered.text
        return client

    yield _signs_in
    for services in opened:
        services.close()


@pytest.mark.parametrize(
    ("method", "secret"),
    [
        # The provider of tests/web/oidc has a secret every time.
        pytest.param("client_secret_basic", CLIENT_SECRET, marks=pytest.mark.long),
        pytest.param("client_secret_post", CLIENT_SECRET, marks=pytest.mark.long),
        ("none", ""),
    ],
)
def test_somebody_signs_in_at_a_certified_provider(
    signs_in: Callable[..., FlaskClient], method: str, secret: str
) -> None:
    with provider_with({"token_endpoint_auth_method": method}) as issuer:
        browser = signs_in(issuer, "zoe", OIDC_CLIENT_SECRET=secret)
        assert "<bdi>zoe</bdi>" in browser.get("/", headers=PAGE).text
        services: Services = browser.application.extensions["assistant"]
        linked = services.single_sign_on.identities.of_person(services.accounts.people.get("zoe").id)
        assert [(one.issuer, one.subject, one.label) for one in linked] == [(issuer, "zoe", "zoe@example.org")]
        page = browser.post("/logout", headers=PAGE).text
        out = re.search(r'href="(http[^"]+/session/end[^"]+)"', page)
        assert out is not None
        assert through_the_forms(html.unescape(out[1]), "zoe").startswith("http://localhost/login")
