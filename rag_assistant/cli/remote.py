"""A server elsewhere, asked over its API with a token. It needs no data of this machine."""

from __future__ import annotations

import codecs
import http.client
import json
import os
import socket
import ssl
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit
from uuid import uuid4

import click

SERVER_VARIABLE, TOKEN_VARIABLE = "RAG_ASSISTANT_SERVER", "RAG_ASSISTANT_TOKEN"
CONNECT_TIMEOUT_SECONDS = 10.0
# An open answer has a sign of life every 15 seconds.
READ_TIMEOUT_SECONDS = 60.0
MAX_ERROR_BYTES = 100_000
PIECE_BYTES = 65_536
LOOPBACK = ("localhost", "127.0.0.1", "::1")


class RemoteFailed(click.ClickException):
    """A server elsewhere refused. The exit codes are what a script can tell apart; 2 is a wrong command line.

    ``kind`` and ``details`` are what the error has in the API.
    """

    def __init__(self, message: str, kind: str | None = None, details: dict[str, Any] | None = None) -> None:
        super().__init__(message)
        self.kind = kind
        self.details = details or {}


class RefusedThere(RemoteFailed):
    """What it was asked is wrong there, or about nothing that is there."""


class NotAllowedThere(RemoteFailed):
    """It takes a token, or another one."""

    exit_code = 3


class TryLater(RemoteFailed):
    """A limit is reached, or it has too much to do."""

    exit_code = 4


class NotReached(RemoteFailed):
    """It is not there, not safe to speak to, or no assistant."""

    exit_code = 5


KINDS: dict[int, type[RemoteFailed]] = {401: NotAllowedThere, 403: NotAllowedThere, 429: TryLater, 503: TryLater}


class RemoteServer:
    """Asks one server. Redirects are never followed: the token is for the address that was named."""

    def __init__(self, url: str, token: str | None) -> None:
        self.url = url.rstrip("/")
        parts = urlsplit(self.url)
        if parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.username:
            raise click.BadParameter(
                f'"{url}"; it must be a URL such as https://assistant.example, without a name, password or query.'
            )
        self._token = token
        self._path = parts.path
        self._host = parts.hostname
        try:
            self._port = parts.port
        except ValueError as error:
            raise click.BadParameter(f'"{url}"; its port must be a number from 1 to 65535.') from error
        self._secure = parts.scheme == "https"
        if token and not self._secure and self._host not in LOOPBACK:
            click.secho(f"{self.url} is not encrypted: who is on the way can read the token.", fg="yellow", err=True)

    def call(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> Any:
        """Return what the API answers, ``None`` where that is nothing. Raises RemoteFailed."""
        with self.request(method, path, body) as response:
            return self._parsed(response) if response.status != 204 else None

    def pages(self, path: str, name: str) -> Iterator[dict[str, Any]]:
        """Yield the items of a list, page after page. Raises RemoteFailed."""
        cursor: str | None = ""
        while cursor is not None:
            page = self.call("GET", f"{path}&cursor={quote(cursor)}" if cursor else path)
            yield from page[name]
            cursor = page["next_cursor"]

    def text(self, path: str) -> Iterator[str]:
        """Yield a text as it comes. Raises RemoteFailed."""
        decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
        with self.request("GET", path) as response, self._reaching():
            while piece := response.read(PIECE_BYTES):
                yield decoder.decode(piece)

    def upload(self, path: str, file: Path, fields: Mapping[str, str]) -> Any:
        """Send a file with fields beside it, and return what the API answers. Raises RemoteFailed, OSError."""
        boundary = uuid4().hex
        name = file.name.replace('"', "%22").replace("\r", "%0D").replace("\n", "%0A")
        parts = [f'name="{key}"\r\n\r\n{value}\r\n' for key, value in fields.items()]
        parts.append(f'name="file"; filename="{name}"\r\nContent-Type: application/octet-stream\r\n\r\n')
        head = "".join(f"--{boundary}\r\nContent-Disposition: form-data; {part}" for part in parts).encode()
        end = f"\r\n--{boundary}--\r\n".encode()
        with file.open("rb") as opened:
            headers = {
                "Content-Type": f"multipart/form-data; boundary={boundary}",
                "Content-Length": str(len(head) + os.fstat(opened.fileno()).st_size + len(end)),
            }
            body = chain([head], iter(partial(opened.read, PIECE_BYTES), b""), [end])
            with self.request("POST", path, body, headers) as response:
                return self._parsed(response)

    def _parsed(self, response: http.client.HTTPResponse) -> Any:
        try:
            with self._reaching():
                return json.loads(response.read())
        except ValueError as error:
            raise self.no_assistant() from error

    @contextmanager
    def request(
        self,
        method: str,
        path: str,
        body: Mapping[str, Any] | Iterable[bytes] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Iterator[http.client.HTTPResponse]:
        """Send a request and give its answer, unless that is a refusal. Raises RemoteFailed."""
        kind = http.client.HTTPSConnection if self._secure else http.client.HTTPConnection
        sent = {"Accept": "application/json"} | dict(headers or {})
        if self._token:
            sent["Authorization"] = f"Bearer {self._token}"
        content: bytes | Iterable[bytes] | None = None
        if isinstance(body, Mapping):
            content, sent["Content-Type"] = json.dumps(body).encode(), "application/json"
        elif body is not None:
            content = body
        with closing(kind(self._host, self._port, timeout=CONNECT_TIMEOUT_SECONDS)) as connection:
            with self._reaching():
                connection.connect()
                connection.sock.settimeout(READ_TIMEOUT_SECONDS)
                with suppress(
                    BrokenPipeError, ConnectionResetError
                ):  # What refuses a body need not read it to its end.
                    connection.request(method, self._path + path, content, sent)
                response = connection.getresponse()
            with response:
                if response.status >= 300:
                    raise self._refusal(response)
                yield response

    @contextmanager
    def _reaching(self) -> Iterator[None]:
        """Say in a sentence why a server cannot be reached."""
        try:
            yield
        except ssl.SSLCertVerificationError as error:
            raise self.unreached(f"its certificate is not trusted ({error.verify_message})") from error
        except ssl.SSLError as error:
            raise self.unreached("it does not use TLS; write http:// instead of https://") from error
        except TimeoutError as error:
            raise self.unreached("it does not answer") from error
        except socket.gaierror as error:
            raise self.unreached(f'there is no host "{self._host}"') from error
        except ConnectionRefusedError as error:
            raise self.unreached("nothing listens there") from error
        except http.client.IncompleteRead as error:
            raise self.unreached("the connection broke off") from error
        except http.client.HTTPException as error:
            raise self.no_assistant() from error
        except OSError as error:
            raise self.unreached(error.strerror or "the connection broke off") from error

    def unreached(self, why: str) -> RemoteFailed:
        """Return the error of a server that is not there."""
        return NotReached(f"{self.url} cannot be reached: {why}.")

    def no_assistant(self) -> RemoteFailed:
        """Return the error of an answer that an assistant would not give."""
        return NotReached(f"What answers at {self.url} is not an assistant. Check the address.")

    def _refusal(self, response: http.client.HTTPResponse) -> RemoteFailed:
        """Return what a server says about why it refuses."""
        status, place = response.status, response.getheader("Location")
        if status < 400:
            return NotReached(f"{self.url} leads on to {place}. Name that address if you trust it.")
        try:
            error = json.loads(response.read(MAX_ERROR_BYTES))["error"]
            said, kind, details = str(error["message"]), str(error.get("type")), error.get("details")
        except (OSError, ValueError, KeyError, TypeError, http.client.HTTPException):
            later = " Try again in a moment." if status in (502, 503, 504) else ""
            return NotReached(f"{self.url} answered {status}, and not as an assistant does.{later}")
        if status == 401:
            said = (
                f"{self.url} does not accept this token; it may have expired or been revoked."
                if self._token
                else f"{self.url} asks for an API token. Put one into {TOKEN_VARIABLE}, or name a file: --token-file."
            )
        wait = response.getheader("Retry-After")
        if status in (429, 503) and wait and "try again" not in said.lower():
            said += f" Try again in {wait} seconds."
        return KINDS.get(status, RefusedThere)(said, kind, details)
