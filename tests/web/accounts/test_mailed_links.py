"""Links for choosing a password by email, where a server for it is set; where that fails, the link is shown."""

import logging
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from flask import Flask

from rag_assistant.services import Services
from rag_assistant.web import create_app
from tests.testkit.mail_server import MailServer
from tests.testkit.people import add_person, client_of
from tests.testkit.samples import sample
from tests.web.conftest import PAGE, post

FIELD = 'name="email"'


@pytest.fixture
def mails() -> Iterator[MailServer]:
    server = MailServer()
    yield server
    server.close()


@pytest.fixture
def mailing(environment: dict[str, str], mails: MailServer) -> Iterator[Flask]:
    """A server that sends email, with an administrator, Ann."""
    smtp = {"SMTP_URL": f"smtp+plain://{mails.address}", "SMTP_FROM": "assistant@example.org"}
    app = create_app(environment | smtp)
    services: Services = app.extensions["assistant"]
    services.start()
    add_person(services, "Ann", "admin")
    yield app
    services.close()


def test_an_invitation_and_a_reset_are_sent_and_the_address_is_kept(
    mailing: Flask, mails: MailServer, caplog: pytest.LogCaptureFixture
) -> None:
    admin = client_of(mailing, "Ann")
    with caplog.at_level(logging.DEBUG):
        status, page = post(admin, "/people", name="Ben\u202e", role="member", email="ben@example.org")
        assert (status, "visible characters" in page) == (422, True)
        status, page = post(admin, "/people", name="Ben", role="member", email="ben@example.org")
    assert (status, "A link was sent to ben@example.org." in page) == (200, True)
    assert "choose-password?link=" not in page
    (mail,) = mails.mails
    found = re.search(r"http://localhost(/choose-password\?link=([\w-]+))", mail.get_content())
    assert found is not None
    assert mail["To"] == "ben@example.org"
    assert mail.get_content().startswith("Ben, with this link you choose your password, once, within two days:")
    assert found[2] not in caplog.text
    guest = mailing.test_client()
    assert post(guest, "/choose-password", link=found[2], password="chosen by a link") == (303, "/")
    ben = mailing.extensions["assistant"].accounts.people.get("Ben")
    assert (ben.email, 'value="ben@example.org"' in page) == ("ben@example.org", True)
    german = admin.post(f"/people/{ben.id}/link", data={"email": ben.email}, headers=PAGE | {"Accept-Language": "de"})
    assert german.status_code == 200
    assert mails.mails[1]["Subject"] == "Wählen Sie Ihr Passwort"


def test_what_fails_is_told_and_the_link_is_shown(mailing: Flask, mails: MailServer) -> None:
    mails.fault = "recipient"
    status, page = post(client_of(mailing, "Ann"), "/people", name="Ben", role="member", email="ben@example.org")
    assert status == 502
    assert f"The email could not be sent by {mails.address}: it refused the message." in page
    assert re.search(r"http://localhost/choose-password\?link=[\w-]+", page)


@pytest.mark.parametrize(
    "address",
    sample(
        [
            *("ben", "ben@example.org, eve@example.org", "b@x\r\nBcc: eve@example.org", "é@example.org"),
            # In a header, these would be decoded: a line break, and another address.
            *("=?utf-8?q?b=0aBcc=3aeve=40example.org?=@x.org", "=?utf-8?q?eve=40example.org=2c?=@x.org"),
        ],
        2,
    ),
)
def test_what_is_no_address_gets_no_mail_and_the_link_is_shown(mailing: Flask, mails: MailServer, address: str) -> None:
    status, page = post(client_of(mailing, "Ann"), "/people", name="Ben", role="member", email=address)
    assert (status, "is not an email address." in page, "choose-password?link=" in page) == (422, True, True)
    assert mails.mails == []


def test_an_address_may_be_of_a_deep_domain(mailing: Flask, mails: MailServer) -> None:
    address = "ben+links@lab.dept.university.ac.example"
    assert post(client_of(mailing, "Ann"), "/people", name="Ben", role="member", email=address)[0] == 200
    assert mails.mails[0]["To"] == address


def test_without_an_address_the_link_is_shown_as_ever(mailing: Flask, mails: MailServer) -> None:
    status, page = post(client_of(mailing, "Ann"), "/people", name="Ben", role="member", email="")
    assert (status, "choose-password?link=" in page, FIELD in page) == (200, True, True)
    assert mails.mails == []


def test_where_no_server_is_set_nothing_asks_for_an_address(app: Flask, services: Services) -> None:
    add_person(services, "Ann", "admin")
    admin = client_of(app, "Ann")
    assert FIELD not in admin.get("/people", headers=PAGE).text
    status, page = post(admin, "/people", name="Ben", role="member", email="ben@example.org")
    assert (status, "choose-password?link=" in page) == (200, True)


def test_the_password_of_the_mail_server_is_read_from_the_environment_alone(
    environment: dict[str, str], tmp_path: Path
) -> None:
    settings = tmp_path / "other.json"
    settings.write_text('{"smtp": {"url": "smtp://mail.example", "password": "geheim"}}')
    with pytest.raises(Exception, match="SMTP_PASSWORD"):
        create_app(environment | {"SETTINGS_FILE": str(settings)})
