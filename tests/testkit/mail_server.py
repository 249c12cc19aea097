"""An SMTP server for tests: it keeps what it gets, or is silent, drips, refuses or breaks off."""

import base64
import email.policy
import ssl
import threading
import time
from email import message_from_bytes
from email.message import EmailMessage
from socketserver import StreamRequestHandler, ThreadingTCPServer
from typing import Literal

Fault = Literal["silent", "dripping", "recipient", "password", "broken"]


class MailServer(ThreadingTCPServer):
    """Listens on loopback; with a ``context`` it offers STARTTLS, or speaks TLS from the ``implicit`` start."""

    daemon_threads = True
    block_on_close = False

    def __init__(
        self, *, context: ssl.SSLContext | None = None, implicit: bool = False, fault: Fault | None = None
    ) -> None:
        super().__init__(("127.0.0.1", 0), Session)
        self.context, self.implicit, self.fault = context, implicit, fault
        self.mails: list[EmailMessage] = []
        self.recipients: list[str] = []
        self.signed_in: list[str] = []
        # Commands that came in the clear.
        self.clear: list[str] = []
        self.address = f"localhost:{self.server_address[1]}"
        threading.Thread(target=self.serve_forever, name="mail server", daemon=True).start()

    def handle_error(self, request: object, client_address: object) -> None:
        """Say nothing of clients that leave."""

    def close(self) -> None:
        self.shutdown()
        self.server_close()


class Session(StreamRequestHandler):
    """One connection."""

    server: MailServer

    def handle(self) -> None:
        """Answer commands until the client leaves."""
        server = self.server
        if server.context is not None and server.implicit:
            self._encrypt()
        if server.fault == "silent":
            time.sleep(60)
        while server.fault == "dripping":
            self.wfile.write(b"220-wait\r\n")
            time.sleep(0.05)
        self._say(b"220 ready")
        while line := self.rfile.readline():
            if not isinstance(self.connection, ssl.SSLSocket):
                server.clear.append(line.decode().strip())
            command, _, rest = line.decode().strip().partition(" ")
            match command.upper():
                case "EHLO":
                    offers = [b"AUTH PLAIN", b"8BITMIME"]
                    if server.context is not None and not isinstance(self.connection, ssl.SSLSocket):
                        offers = [b"STARTTLS"]
                    self._say(b"250-stub\r\n" + b"".join(b"250-%s\r\n" % offer for offer in offers) + b"250 done")
                case "STARTTLS":
                    self._say(b"220 go on")
                    self._encrypt()
                case "AUTH":
                    server.signed_in.append(base64.b64decode(rest.partition(" ")[2]).decode())
                    self._say(b"535 wrong" if server.fault == "password" else b"235 welcome")
                case "RCPT":
                    server.recipients.append(rest)
                    self._say(b"550 nobody" if server.fault == "recipient" else b"250 fine")
                case "DATA":
                    self._say(b"354 go on")
                    lines = iter(self.rfile.readline, b".\r\n")
                    message = message_from_bytes(b"".join(lines), policy=email.policy.default)
                    if server.fault == "broken":
                        break
                    server.mails.append(message)
                    self._say(b"250 taken")
                case "QUIT":
                    self._say(b"221 bye")
                    break
                case _:
                    self._say(b"250 fine")

    def finish(self) -> None:
        """Close the connection, which is another one once it is encrypted."""
        super().finish()
        self.connection.close()

    def _say(self, line: bytes) -> None:
        self.wfile.write(line + b"\r\n")

    def _encrypt(self) -> None:
        assert self.server.context is not None
        self.connection = self.server.context.wrap_socket(self.connection, server_side=True)
        self.setup_files()

    def setup_files(self) -> None:
        """Read and write over the connection as it is now."""
        self.rfile = self.connection.makefile("rb")
        self.wfile = self.connection.makefile("wb", buffering=0)
