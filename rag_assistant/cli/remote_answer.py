"""The answer of a server elsewhere, as it is written."""

from __future__ import annotations

import http.client
import json
from collections.abc import Iterator, Mapping
from typing import Any, cast

from rag_assistant.cli.remote import NotReached, RemoteServer
from rag_assistant.records import Event

MAX_CONNECTIONS = 4


class RemoteAnswer:
    """Asks once it is read; ``turn_id`` is there as soon as the question was accepted."""

    def __init__(self, server: RemoteServer, body: Mapping[str, Any]) -> None:
        self.turn_id: int | None = None
        self._server = server
        self._body = body

    def __iter__(self) -> Iterator[Event]:
        """Yield the events; where the connection breaks, go on from there. Raises RemoteFailed."""
        position, ended = 0, False
        for _ in range(MAX_CONNECTIONS):
            if self.turn_id is None:
                opened = self._server.request("POST", "/api/query/stream", self._body)
            else:
                headers = {"Last-Event-ID": str(position)}
                opened = self._server.request("GET", f"/api/turns/{self.turn_id}/stream", headers=headers)
            with opened as response:
                for event in self._events(response):
                    if not ended:  # What comes behind the end is read, so that nobody hangs up on the server.
                        self.turn_id = event.data.get("turn_id", self.turn_id)
                        position = event.position or position
                        ended = event.name in ("end", "error")
                        yield event
            if ended:
                return
            if self.turn_id is None:
                break
        raise NotReached(f"The connection to {self._server.url} broke off. What was asked is kept there.")

    def stop(self) -> None:
        """End the answer; what is written is kept. Raises RemoteFailed."""
        if self.turn_id is not None:
            self._server.call("POST", f"/api/turns/{self.turn_id}/stop", {})

    def _events(self, response: http.client.HTTPResponse) -> Iterator[Event]:
        """Yield the events of a stream (WHATWG HTML, section 9.2) until it ends or breaks off."""
        if response.getheader("Content-Type", "").partition(";")[0] != "text/event-stream":
            raise self._server.no_assistant()
        accepted = response.getheader("X-Turn-Id", "")
        if accepted.isdecimal():
            self.turn_id = int(accepted)
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
            raise self._server.no_assistant() from error
