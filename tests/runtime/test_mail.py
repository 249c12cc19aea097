"""Email: encrypted as the setting says, in bounded time, and every failure in words that repeat nothing of it."""

import ssl
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from rag_assistant.records.errors import MailFailed
from rag_assistant.runtime import mail as module
from rag_assistant.runtime.mail import send_mail
from rag_assistant.settings.schema import Settings
from tests.testkit.mail_server import MailServer
from tests.testkit.samples import sample

LINK = "http://localhost/choose-password?link=secret"
Serve = Callable[..., MailServer]


@pytest.fixture
def serve() -> Iterator[Serve]:
    """Starts SMTP servers."""
    servers: list[MailServer] = []

    def start(**options: Any) -> MailServer:
        servers.append(MailServer(**options))
        return servers[-1]

    yield start
    for server in servers:
        server.close()


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A file with a certificate for localhost and its key."""
    pem = str(tmp_path_factory.mktemp("certificate") / "localhost.pem")
    request = "req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=localhost -addext subjectAltName=DNS:localhost"
    subprocess.run(["openssl", *request.split(), "-keyout", pem, "-out", pem], check=True, capture_output=True)
    return pem


@pytest.fixture
def context(certificate: str) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    return context


def send(server: MailServer, scheme: str = "smtp+plain", **settings: Any) -> None:
    values = {"smtp_url": f"{scheme}://{server.address}", "smtp_from": "assistant@example.org"} | settings
    send_mail(Settings(**values), "ben@example.org", "Passwort wählen", f"Grüße, 你好:\n\n{LINK}\n")


def failure(server: MailServer, scheme: str = "smtp+plain", **settings: Any) -> str:
    with pytest.raises(MailFailed) as caught:
        send(server, scheme, **settings)
    assert server.address in str(caught.value)
    return str(caught.value).partition(f"{server.address}: ")[2]


def test_a_message_arrives_whole(serve: Serve) -> None:
    server = serve()
    send(server)
    (mail,) = server.mails
    assert (mail["From"], mail["To"], mail["Subject"]) == (
        "assistant@example.org",
        "ben@example.org",
        "Passwort wählen",
    )
    assert mail["Date"].datetime is not None
    assert mail["Message-ID"].endswith("@example.org>")
    assert mail.get_content().replace("\r\n", "\n") == f"Grüße, 你好:\n\n{LINK}\n"
    assert server.recipients == ["TO:<ben@example.org>"]
    assert server.signed_in == []


@pytest.mark.parametrize(("scheme", "implicit"), [("smtp", False), ("smtps", True)])
def test_nothing_but_the_greeting_is_sent_in_the_clear(
    serve: Serve,
    context: ssl.SSLContext,
    certificate: str,
    monkeypatch: pytest.MonkeyPatch,
    scheme: str,
    implicit: bool,
) -> None:
    server = serve(context=context, implicit=implicit)
    assert failure(server, scheme) == "its certificate is not valid."
    assert not server.mails
    server.clear.clear()
    monkeypatch.setenv("SSL_CERT_FILE", certificate)
    send(server, scheme, smtp_user="assistant", smtp_password="geheim")
    assert server.signed_in == ["\0assistant\0geheim"]
    assert len(server.mails) == 1
    assert server.clear == ([] if implicit else ["ehlo example.org", "STARTTLS"])


def test_a_server_without_starttls_gets_neither_password_nor_message(serve: Serve) -> None:
    server = serve()
    why = failure(server, "smtp", smtp_user="assistant", smtp_password="geheim")
    assert why == "it offers no STARTTLS, or no sign-in."
    assert not server.signed_in
    assert not server.mails


@pytest.mark.parametrize(
    ("fault", "why"),
    sample(
        [
            ("password", "it rejected smtp_user or smtp_password."),
            ("recipient", "it refused the message."),
            ("broken", "it refused the message."),
        ]
    ),
)
def test_a_failure_is_told_in_words(serve: Serve, fault: str, why: str) -> None:
    assert failure(serve(fault=fault), smtp_user="assistant", smtp_password="geheim") == why


@pytest.mark.parametrize("fault", sample(["silent", "dripping"]))
def test_a_server_that_does_not_come_to_an_end_is_left(
    serve: Serve, monkeypatch: pytest.MonkeyPatch, fault: str
) -> None:
    monkeypatch.setattr(module, "MAX_SECONDS", 0.5)
    began = time.monotonic()
    server = serve(fault=fault)
    assert failure(server) == "it did not answer in time."
    assert time.monotonic() - began < 2
    server.fault = None  # Only then a dripping one ends.
    for thread in [one for one in threading.enumerate() if one.name == "mail"]:
        thread.join(5)
        assert not thread.is_alive()


def test_who_is_not_there_or_not_set_is_told(serve: Serve) -> None:
    server = serve()
    assert failure(server, smtp_from=None) == "smtp_from is not set."
    server.close()
    assert failure(server) == "it cannot be reached."


def test_an_address_holds_no_header_and_a_server_no_password() -> None:
    wrongs: list[dict[str, Any]] = [
        {"smtp_url": "smtp://user:secret@mail.example"},
        {"smtp_url": "smtp://mail.example/path"},
        {"smtp_url": "http://mail.example"},
        {"smtp_from": "a@example.org\nBcc: b@example.org"},
        {"smtp_from": "Ann <a@example.org>"},
    ]
    for wrong in wrongs:
        with pytest.raises(ValueError, match="smtp_"):
            Settings(**wrong)
    for right in ("smtp://mail.example", "smtps://[::1]:465", "smtp+plain://mail:1025"):
        assert Settings(smtp_url=right).smtp_url == right
