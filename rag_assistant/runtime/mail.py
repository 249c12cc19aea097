"""E-mail over SMTP, in bounded time. What a server answers may repeat the text, so it is neither logged nor shown."""

import smtplib
import ssl
import threading
from contextlib import suppress
from email.message import EmailMessage
from email.utils import formatdate, make_msgid
from functools import partial
from socket import SHUT_RDWR
from typing import Any
from urllib.parse import urlsplit
from weakref import WeakKeyDictionary

from rag_assistant.records.errors import MailFailed
from rag_assistant.settings.schema import Settings

MAX_SECONDS = 15.0
PORTS = {"smtps": 465, "smtp": 587, "smtp+plain": 25}
# The first that fits an error; smtplib's are errors of the operating system, too.
REASONS = (
    (smtplib.SMTPAuthenticationError, "it rejected smtp_user or smtp_password"),
    (smtplib.SMTPNotSupportedError, "it offers no STARTTLS, or no sign-in"),
    (smtplib.SMTPException, "it refused the message"),
    (ssl.SSLCertVerificationError, "its certificate is not valid"),
    (Exception, "it cannot be reached"),
)


_connections: WeakKeyDictionary[threading.Thread, Any] = WeakKeyDictionary()


class _Connection(smtplib.SMTP):
    """A connection known by its thread before it waits for the server."""

    def connect(self, *where: Any, **more: Any) -> Any:
        _connections[threading.current_thread()] = self
        return super().connect(*where, **more)


class _EncryptedConnection(_Connection, smtplib.SMTP_SSL):
    pass


def send_mail(settings: Settings, to: str, subject: str, text: str) -> None:
    """Send an e-mail over ``smtp_url`` to a checked address; wait ``MAX_SECONDS`` at most. Raises MailFailed."""
    url, sender = urlsplit(settings.smtp_url or ""), settings.smtp_from
    if sender is None:
        raise MailFailed(url.netloc, "smtp_from is not set")
    domain = sender.rpartition("@")[2]
    message = EmailMessage()
    message["From"], message["To"], message["Subject"] = sender, to, subject
    message["Date"], message["Message-ID"] = formatdate(), make_msgid(domain=domain)
    message.set_content(text)
    errors: list[Exception] = []

    def deliver() -> None:
        # By default, smtplib accepts every certificate.
        context = ssl.create_default_context()
        kind = partial(_EncryptedConnection, context=context) if url.scheme == "smtps" else _Connection
        try:
            with kind(url.hostname or "", url.port or PORTS[url.scheme], domain, timeout=MAX_SECONDS) as connection:
                if url.scheme == "smtp":
                    connection.starttls(context=context)
                if settings.smtp_user is not None:
                    connection.login(settings.smtp_user, settings.smtp_password or "")
                connection.send_message(message)
        except Exception as error:  # noqa: BLE001 - told below
            errors.append(error)

    # smtplib limits only each step, and a name server takes its own time.
    delivering = threading.Thread(target=deliver, name="mail", daemon=True)
    delivering.start()
    delivering.join(MAX_SECONDS)
    if delivering.is_alive():
        with suppress(KeyError, AttributeError, OSError):
            _connections[delivering].sock.shutdown(SHUT_RDWR)  # This ends the thread.
        raise MailFailed(url.netloc, "it did not answer in time")
    for error in errors:
        raise MailFailed(url.netloc, next(reason for kind, reason in REASONS if isinstance(error, kind)))
