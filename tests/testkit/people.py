"""Accounts for tests: quick to create, each with a signed-in client."""

import contextlib
from collections.abc import Iterator
from unittest import mock

from argon2 import PasswordHasher
from flask import Flask
from flask.testing import FlaskClient

from rag_assistant.accounts import passwords
from rag_assistant.accounts.accounts import Actor
from rag_assistant.records import Person, Role
from rag_assistant.services import Services

PASSWORD = "four words in a row"
ACTOR = Actor("a test")


@contextlib.contextmanager
def quick_passwords() -> Iterator[None]:
    """Make password hashing take a millisecond instead of a tenth of a second."""
    quick = PasswordHasher(time_cost=1, memory_cost=8, parallelism=1)
    with mock.patch.object(passwords, "_hasher", return_value=quick):
        passwords._nobodys.cache_clear()
        yield
    passwords._nobodys.cache_clear()


def add_person(services: Services, name: str, role: Role = "member") -> Person:
    return services.accounts.add(name, role, ACTOR, PASSWORD)


def client_of(app: Flask, name: str, password: str = PASSWORD) -> FlaskClient:
    """Return a client that is signed in."""
    client = app.test_client()
    response = client.post("/login", data={"name": name, "password": password}, headers={"Accept": "text/html"})
    assert response.status_code == 303, response.text
    return client


def token_client(app: Flask, services: Services, person: Person, *scopes: str) -> FlaskClient:
    """Return a client that sends an API token with each request."""
    secret, _ = services.accounts.make_token(person, "test", scopes, 1, ACTOR)
    client = app.test_client()
    client.environ_base["HTTP_AUTHORIZATION"] = f"Bearer {secret}"
    return client
