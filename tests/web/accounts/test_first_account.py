"""Before the first account: nothing is asked of whoever is alone, and nobody from elsewhere comes before it."""

import re
import time

import pytest
from flask.testing import FlaskClient

from rag_assistant.records.errors import SettingsError
from rag_assistant.services import Services
from rag_assistant.web import create_app
from tests.testkit.people import PASSWORD, add_person
from tests.web.conftest import PAGE, post


def test_alone_nothing_is_asked_and_the_database_is_asked_once_a_second(
    client: FlaskClient, services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = 0
    before = services.accounts.people.any

    def counted() -> bool:
        nonlocal asked
        asked += 1
        return before()

    monkeypatch.setattr(services.accounts.people, "any", counted)
    monkeypatch.setattr(services.accounts, "_clock", lambda: 0.0)  # All of it within one second, however slow.
    page = client.get("/", headers=PAGE)
    for _ in range(20):
        assert client.get("/api/conversations").status_code == 200
    assert page.status_code == 200
    assert "Sign out" not in page.text
    assert "/account" not in page.text
    assert asked <= 2
    assert client.get("/login", headers=PAGE).headers["Location"] == "/"
    assert client.get("/account", headers=PAGE).status_code == 403


@pytest.mark.parametrize("path", ["/people", "/account", "/libraries"])
def test_a_page_that_takes_an_account_says_that_there_are_none(client: FlaskClient, path: str) -> None:
    page = client.get(path, headers=PAGE)
    assert (page.status_code, "This needs an account, and this server has none." in page.text) == (403, True)


def test_a_server_that_runs_sees_the_first_account_within_a_second(
    client: FlaskClient, services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert client.get("/api/conversations").status_code == 200
    services.accounts.people.add("Ann", "admin", None)
    monkeypatch.setattr(services.accounts, "_clock", lambda: time.monotonic() + 1.0)
    assert client.get("/api/conversations").status_code == 401


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.1.5", "example.org"])
def test_an_address_that_others_reach_needs_an_account_first(
    environment: dict[str, str], host: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rag_assistant.accounts.accounts.in_container", lambda: False)
    app = create_app(environment | {"HOST": host})
    services: Services = app.extensions["assistant"]
    with pytest.raises(SettingsError, match=rf"host is {re.escape(host)}.*rag-assistant accounts add NAME --admin"):
        services.start()
    add_person(services, "Ann")
    services.start()
    assert app.test_client().get("/api/conversations").status_code == 401
    services.close()


def test_in_a_container_a_code_of_the_log_makes_the_first_account(
    environment: dict[str, str], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("rag_assistant.accounts.accounts.in_container", lambda: True)
    app = create_app(environment | {"HOST": "0.0.0.0"})
    services: Services = app.extensions["assistant"]
    services.start()
    code = re.search(r"with this code: (\S+)", caplog.text)
    assert code is not None
    client = app.test_client()
    assert client.get("/api/conversations").status_code == 401
    assert client.post("/api/query", json={"question": "Why?"}).status_code == 401
    assert client.get("/", headers=PAGE).headers["Location"] == "/setup"
    assert "Create the first account" in client.get("/setup", headers=PAGE).text
    fields = {"name": "Ann", "password": PASSWORD}
    assert post(client, "/setup", code="wrong", **fields)[0] == 401
    assert post(client, "/setup", code=code[1], **fields) == (303, "/")
    assert client.get("/api/conversations").status_code == 200
    assert post(app.test_client(), "/setup", code=code[1], name="Eve", password=PASSWORD) == (303, "/")
    assert [one.name for one in services.accounts.people.all()] == ["Ann"]
    services.close()
