"""Email over SMTP, in bounded time. What a server answers may repeat the text, so it is neither logged nor shown."""

import smtplib
import ssl
import threading
from email.message import EmailMessage
from email.utils import formatdate, make_msgid
from functools import partial
from urllib.parse import urlsplit

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


def send_mail(settings: Settings, to: str, subject: str, text: str) -> None:
    """Send an email over ``smtp_url`` to a checked address; wait ``MAX_SECONDS`` at most. Raises MailFailed."""
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
        kind = partial(smtplib.SMTP_SSL, context=context) if url.scheme == "smtps" else smtplib.SMTP
        try:
            with kind(url.hostname or "", url.port or PORTS[url.scheme], domain, timeout=2 * MAX_SECONDS) as connection:
                if url.scheme == "smtp":
                    connection.starttls(context=context)
                if settings.smtp_user is not None:
                    connection.login(settings.smtp_user, settings.smtp_password or "")
                connection.send_message(message)
        except Exception as error:  # noqa: BLE001 - told below
            errors.append(error)

    # smtplib limits only each step, to more, and a name server takes its own time: a late one is left to itself.
    delivering = threading.Thread(target=deliver, name="mail", daemon=True)
    delivering.start()
    delivering.join(MAX_SECONDS)
    if delivering.is_alive():
        raise MailFailed(url.netloc, "it did not answer in time")
    for error in errors:
        raise MailFailed(url.netloc, next(reason for kind, reason in REASONS if isinstance(error, kind)))
