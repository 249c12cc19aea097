"""A server elsewhere, asked over its API with a token: what ``--server`` means. It needs no data of this machine."""

from __future__ import annotations

import http.client
import json
import os
import socket
import ssl
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, cast
from urllib.parse import urlsplit

import click

from rag_assistant.records import Event

SERVER_VARIABLE, TOKEN_VARIABLE = "RAG_ASSISTANT_SERVER", "RAG_ASSISTANT_TOKEN"
CONNECT_TIMEOUT_SECONDS = 10.0
# An open answer has a sign of life every 15 seconds.
READ_TIMEOUT_SECONDS = 60.0
MAX_CONNECTIONS = 4
MAX_ERROR_BYTES = 100_000
LOOPBACK = ("localhost", "127.0.0.1", "::1")


class RemoteFailed(click.ClickException):
    """A server elsewhere refused. The exit codes are what a script can tell apart; 2 is a wrong command line."""


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

    def ask(self, body: Mapping[str, Any]) -> Iterator[Event]:
        """Yield the events of an answer; where the connection breaks, go on from there. Raises RemoteFailed."""
        turn_id, position, ended = None, 0, False
        for _ in range(MAX_CONNECTIONS):
            if turn_id is None:
                opened = self._request("POST", "/api/query/stream", body)
            else:
                headers = {"Last-Event-ID": str(position)}
                opened = self._request("GET", f"/api/turns/{turn_id}/stream", headers=headers)
            with opened as response:
                for event in self._events(response):
                    if not ended:  # What comes behind the end is read, so that nobody hangs up on the server.
                        turn_id, position = event.data.get("turn_id", turn_id), event.position or position
                        ended = event.name in ("end", "error")
                        yield event
            if ended:
                return
            if turn_id is None:
                break
        raise NotReached(f"The connection to {self.url} broke off. What was asked is kept there.")

    def stop(self, turn_id: int) -> None:
        """End an answer; what is written is kept. Raises RemoteFailed."""
        with self._request("POST", f"/api/turns/{turn_id}/stop", {}):
            pass

    def _events(self, response: http.client.HTTPResponse) -> Iterator[Event]:
        """Yield the events of a stream (WHATWG HTML, section 9.2) until it ends or breaks off."""
        if response.getheader("Content-Type", "").partition(";")[0] != "text/event-stream":
            raise self._no_assistant()
        fields: dict[str, str] = {}
        try:
            for line in response:
                name, _, value = line.decode().rstrip("\r\n").partition(":")
                if name:
                    fields[name] = value.removeprefix(" ")
                elif "data" in fields:
                    position = fields.get("id", "")
                    # "error" follows as well: the former name of "failed".
                    name = "error" if fields["event"] == "failed" else fields["event"]
                    yield Event(cast("Any", name), json.loads(fields["data"]), int(position) if position else None)
                    fields = {}
        except (OSError, http.client.HTTPException):
            return
        except (ValueError, KeyError) as error:
            raise self._no_assistant() from error

    @contextmanager
    def _request(
        self, method: str, path: str, body: Mapping[str, Any] | None = None, headers: Mapping[str, str] | None = None
    ) -> Iterator[http.client.HTTPResponse]:
        kind = http.client.HTTPSConnection if self._secure else http.client.HTTPConnection
        sent = {"Accept": "application/json"} | dict(headers or {})
        if self._token:
            sent["Authorization"] = f"Bearer {self._token}"
        content = None
        if body is not None:
            content, sent["Content-Type"] = json.dumps(body).encode(), "application/json"
        with closing(kind(self._host, self._port, timeout=CONNECT_TIMEOUT_SECONDS)) as connection:
            with self._reaching():
                connection.connect()
                connection.sock.settimeout(READ_TIMEOUT_SECONDS)
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
            raise self._unreached(f"its certificate is not trusted ({error.verify_message})") from error
        except ssl.SSLError as error:
            raise self._unreached("it does not speak TLS there; is it http:// and not https://?") from error
        except TimeoutError as error:
            raise self._unreached("it does not answer") from error
        except socket.gaierror as error:
            raise self._unreached(f'there is no host "{self._host}"') from error
        except ConnectionRefusedError as error:
            raise self._unreached("nothing listens there") from error
        except http.client.HTTPException as error:
            raise self._no_assistant() from error
        except OSError as error:
            raise self._unreached(error.strerror or "the connection broke off") from error

    def _unreached(self, why: str) -> RemoteFailed:
        return NotReached(f"{self.url} cannot be reached: {why}.")

    def _no_assistant(self) -> RemoteFailed:
        return NotReached(f"What answers at {self.url} is no assistant of this kind. Is the address right?")

    def _refusal(self, response: http.client.HTTPResponse) -> RemoteFailed:
        """Return what a server says about why it refuses."""
        status, place = response.status, response.getheader("Location")
        if status < 400:
            return NotReached(f"{self.url} leads on to {place}. Name that address if you trust it.")
        try:
            error = json.loads(response.read(MAX_ERROR_BYTES))["error"]
            said = str(error["message"])
        except (OSError, ValueError, KeyError, TypeError, http.client.HTTPException):
            later = " Try again in a moment." if status in (502, 503, 504) else ""
            return NotReached(f"{self.url} answered {status}, and not as an assistant does.{later}")
        if status == 401:
            said = (
                f"{self.url} does not take this token; it may be over, or revoked."
                if self._token
                else f"{self.url} asks for an API token. Put one into {TOKEN_VARIABLE}, or name a file: --token-file."
            )
        wait = response.getheader("Retry-After")
        if status in (429, 503) and wait and "try again" not in said.lower():
            said += f" Try again in {wait} seconds."
        return KINDS.get(status, RemoteFailed)(said)


def server_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options that name a server elsewhere."""
    server = click.option(
        "--server", metavar="URL", envvar=SERVER_VARIABLE, help=f"Ask this server ({SERVER_VARIABLE})."
    )
    token_file = click.option(
        "--token-file",
        type=click.Path(dir_okay=False, path_type=Path),
        help=f"A file with an API token for it; without one, {TOKEN_VARIABLE} has it.",
    )
    return server(token_file(command))


def token_from(file: Path | None) -> str | None:
    """Return the API token in a file or in the environment. It is never a word of the command: all could see it."""
    if file is None:
        return os.environ.get(TOKEN_VARIABLE, "").strip() or None
    try:
        token = file.read_text().strip()
    except (OSError, UnicodeDecodeError) as error:
        raise click.BadParameter(f"{file} cannot be read ({getattr(error, 'strerror', None) or 'no text'}).") from error
    if not token or len(token.split()) != 1 or not token.isascii():
        raise click.BadParameter(f"{file} must hold an API token and nothing else.")
    return token


def names_server(words: list[str]) -> bool:
    """Tell whether a command is about a server elsewhere."""
    return bool(os.environ.get(SERVER_VARIABLE)) or any(
        word == "--server" or word.startswith("--server=") for word in words
    )
