"""The API for commands: of the application in this process, or of another server."""

from __future__ import annotations

import functools
import json
import os
import ssl
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, cast

import click

from rag_assistant.cli.commands import ApiError, Function, opened_services, printable
from rag_assistant.llm.failures import cause_of
from rag_assistant.records import ALONE, Event

if TYPE_CHECKING:
    import httpx2

    from rag_assistant.services import Services

SERVER_VARIABLE, TOKEN_VARIABLE = "RAG_ASSISTANT_SERVER", "RAG_ASSISTANT_TOKEN"
# An open answer sends a heartbeat every 15 seconds; a connection test waits for a model up to three times 30 seconds.
CONNECT_TIMEOUT_SECONDS, READ_TIMEOUT_SECONDS = 10.0, 120.0
MAX_CONNECTIONS = 4
LOOPBACK = ("localhost", "127.0.0.1", "::1")
# For scripts; 2 is a usage error.
NOT_ALLOWED, TRY_LATER, NOT_REACHED = 3, 4, 5
EXIT_CODES = {401: NOT_ALLOWED, 403: NOT_ALLOWED, 429: TRY_LATER, 503: TRY_LATER}
OPTIONS = (
    click.Option(["--server"], metavar="URL", envvar=SERVER_VARIABLE, help=f"Use this server ({SERVER_VARIABLE})."),
    click.Option(
        ["--token-file"],
        type=click.Path(dir_okay=False, path_type=Path),
        help=f"A file with an API token for it; otherwise {TOKEN_VARIABLE} is used.",
    ),
)


class Api:
    """Sends requests. ``services`` are those of this process, ``None`` for another server."""

    def __init__(self, http: httpx2.Client, services: Services | None = None, *, has_token: bool = False) -> None:
        self.services = services
        self._http = http
        self._url = str(http.base_url).rstrip("/")
        self._has_token = has_token

    def call(self, method: str, path: str, body: Mapping[str, Any] | None = None, **params: str) -> Any:
        """Return the API's response, ``None`` if it is empty. Raises ApiError."""
        with self._send(method, path, body, params=params) as response:
            return self._parsed(response) if response.status_code != 204 else None

    def pages(self, path: str, **params: str) -> Iterator[dict[str, Any]]:
        """Yield the items of a list, page by page. Raises ApiError."""
        name, cursor = path.rpartition("/")[2], ""
        while cursor is not None:
            page = self.call("GET", path, None, limit="100", **params, **({"cursor": cursor} if cursor else {}))
            yield from page[name]
            cursor = page["next_cursor"]

    def text(self, path: str, **params: str) -> Iterator[str]:
        """Yield a text as it arrives. Raises ApiError."""
        with self._send("GET", path, params=params) as response:
            yield from map(printable, response.iter_text())

    def download(self, path: str, file: Path, **params: str) -> None:
        """Write a file that the API returns. Raises ApiError, OSError."""
        with self._send("GET", path, params=params) as response:
            file.write_bytes(response.read())

    def upload(self, path: str, name: str, content: IO[bytes], fields: Mapping[str, str]) -> Any:
        """Send a file with form fields, and return the API's response. Raises ApiError, OSError."""
        with self._send("POST", path, data=dict(fields), files={"file": (name, content)}) as response:
            return self._parsed(response)

    @contextmanager
    def answering(self, question: Mapping[str, Any]) -> Iterator[Iterator[Event]]:
        """Ask, and give the answer's events, reconnecting where it breaks off; Ctrl-C stops it. Raises ApiError."""
        turn_ids: list[int] = []
        try:
            yield self._events(question, turn_ids)
        except KeyboardInterrupt:
            if turn_ids:
                self.call("POST", f"/api/turns/{turn_ids[0]}/stop", {})
            raise

    def _events(self, question: Mapping[str, Any], turn_ids: list[int]) -> Iterator[Event]:
        position, ended = 0, False
        for _ in range(MAX_CONNECTIONS):
            if turn_ids:
                headers = {"Last-Event-ID": str(position)}
                opened = self._send("GET", f"/api/turns/{turn_ids[0]}/stream", headers=headers)
            else:
                opened = self._send("POST", "/api/query/stream", question)
            with opened as response:
                if (turn_id := response.headers.get("X-Turn-Id", "")).isdecimal():
                    turn_ids[:] = [int(turn_id)]
                for event in self._stream_events(response):
                    if not ended:  # Reads to the end, so that the connection is closed cleanly.
                        turn_ids[:] = [event.data["turn_id"]] if "turn_id" in event.data else turn_ids
                        position = event.position or position
                        ended = event.name in ("end", "error")
                        yield event
            if ended:
                return
            if not turn_ids:
                break
        raise ApiError(f"The connection to {self._url} broke off. Your question was saved there.", NOT_REACHED)

    def _stream_events(self, response: httpx2.Response) -> Iterator[Event]:
        """Yield the events of a stream until it ends or breaks off."""
        import httpx2

        try:
            for one in httpx2.EventSource(response, max_event_size=None):
                yield Event(cast("Any", one.event), printable(json.loads(one.data)), int(one.id) if one.id else None)
        except (httpx2.SSEError, ValueError) as error:
            raise self._no_assistant() from error
        except httpx2.TransportError:
            return

    @contextmanager
    def _send(
        self, method: str, path: str, body: Mapping[str, Any] | None = None, **request: Any
    ) -> Iterator[httpx2.Response]:
        """Send a request and give its response. Raises ApiError for an error."""
        import httpx2

        if body is not None:  # In ASCII: an argument may contain lone surrogates.
            request |= {"content": json.dumps(body), "headers": {"Content-Type": "application/json"}}
        try:
            with self._http.stream(method, path, **request) as response:
                if response.status_code >= 300:
                    raise self._refusal(response)
                yield response
        except httpx2.ProtocolError as error:
            raise self._no_assistant() from error
        except httpx2.TransportError as error:
            raise ApiError(f"{self._url} could not be reached{cause_of(error)}.", NOT_REACHED) from error

    def _parsed(self, response: httpx2.Response) -> Any:
        try:
            return printable(json.loads(response.read()))
        except ValueError as error:
            raise self._no_assistant() from error

    def _no_assistant(self) -> ApiError:
        return ApiError(f"The server at {self._url} is not an assistant. Check the address.", NOT_REACHED)

    def _refusal(self, response: httpx2.Response) -> ApiError:
        status = response.status_code
        if status < 400:
            target = response.headers.get("Location")
            return ApiError(f"{self._url} redirects to {target}. Use that address if you trust it.", NOT_REACHED)
        try:
            error = printable(json.loads(response.read()))["error"]
            message, type_, details = str(error["message"]), str(error.get("type")), error.get("details")
        except (ValueError, KeyError, TypeError):
            later = " Try again in a moment." if status in (502, 503, 504) else ""
            return ApiError(f"{self._url} answered {status}, but not as an assistant would.{later}", NOT_REACHED)
        if status == 401:
            message = (
                "does not accept this token; it may have expired or been revoked."
                if self._has_token
                else "requires an API token. Put one into RAG_ASSISTANT_TOKEN, or use --token-file."
            )
            message = f"{self._url} {message}"
        wait = response.headers.get("Retry-After")
        if status in (429, 503) and wait and "try again" not in message.lower():
            message += f" Try again in {wait} s."
        return ApiError(message, EXIT_CODES.get(status, 1), type_, details)


def api_of_server(url: str, token: str | None) -> Api:
    """Return the API of another server. Raises click.BadParameter.

    Redirects are never followed, as the token is only for the given address. Nor is a proxy of the environment used.
    """
    import httpx2

    try:
        parts = httpx2.URL(url)
        usable = parts.scheme in ("http", "https") and parts.host and not parts.query and not parts.userinfo
    except httpx2.InvalidURL:
        usable = False
    if not usable:
        raise click.BadParameter(
            f'"{url}"; it must be a URL such as https://assistant.example, without a name, password or query.'
        )
    if token and parts.scheme == "http" and parts.host not in LOOPBACK:
        click.secho(f"{url} is not encrypted: others on the network can read the token.", fg="yellow", err=True)
    headers = {"Accept": "application/json"} | ({"Authorization": f"Bearer {token}"} if token else {})
    # The system's certificate authorities, including one's own.
    context = ssl.create_default_context()
    timeout = httpx2.Timeout(READ_TIMEOUT_SECONDS, connect=CONNECT_TIMEOUT_SECONDS)
    http = httpx2.Client(base_url=url, headers=headers, timeout=timeout, verify=context, trust_env=False)
    return Api(http, has_token=bool(token))


def api_here(services: Services) -> Api:
    """Return the API of the application in this process, over services that were started for a command.

    Whoever may run commands on this machine may do everything, as without accounts.
    """
    import httpx2

    from rag_assistant.web import app_of
    from rag_assistant.web.routing import IDENTITY, NO_ADDRESS

    app = app_of(services)

    def as_owner(environ: dict[str, Any], start_response: Any) -> Any:
        return app(environ | {IDENTITY: ALONE, NO_ADDRESS: True}, start_response)

    return Api(httpx2.Client(base_url="http://localhost", transport=httpx2.WSGITransport(as_owner)), services)


def api_command(
    name: str, group: click.Group | None = None, *, answers: bool = False
) -> Callable[[Function], click.Command]:
    """Make a command of a group that uses the API: this installation's, or that of --server."""

    def decorate(function: Function) -> click.Command:
        @functools.wraps(function)
        def run(*args: Any, server: str | None, token_file: Path | None, **options: Any) -> None:
            if server is not None:
                function(api_of_server(server, read_token(token_file)), *args, **options)
            elif token_file is not None:
                raise click.UsageError("--token-file needs --server.")
            else:
                with opened_services() as services:
                    services.start_command(answers=answers)
                    function(api_here(services), *args, **options)

        command = (click.command(name) if group is None else group.command(name))(run)
        command.params += OPTIONS
        return command

    return decorate


def read_token(file: Path | None) -> str | None:
    """Return the API token in a file or in the environment. It is never an argument, which others could see."""
    try:
        token = (file.read_text() if file is not None else os.environ.get(TOKEN_VARIABLE, "")).strip()
    except (OSError, UnicodeDecodeError) as error:
        raise click.BadParameter(f"{file} cannot be read ({getattr(error, 'strerror', None) or 'no text'}).") from error
    if file is None and not token:
        return None
    if len(token.split()) != 1 or not token.isascii():
        raise click.BadParameter(f"{file or TOKEN_VARIABLE} must contain an API token and nothing else.")
    return token
