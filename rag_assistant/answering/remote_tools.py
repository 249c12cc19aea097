"""Tools of other programs, named after their server; those that may change something need confirmation."""

from __future__ import annotations

import json
import logging
import re
import threading
import time
from collections.abc import Sequence
from copy import copy
from itertools import chain, repeat
from typing import TYPE_CHECKING, Any

from rag_assistant.answering.tool_arguments import ToolResult, quoted_name
from rag_assistant.records.errors import ToolFailed
from rag_assistant.records.validation import storable
from rag_assistant.runtime.telemetry.steps import step

if TYPE_CHECKING:
    from rag_assistant.llm.tool_servers.connection import RemoteTool, ToolServer

log = logging.getLogger(__name__)

MAX_NAME_CHARS = 64
# What a person is asked to confirm is shown in full.
MAX_ASKED_CHARS = 2000
RETRY_BACKOFF_SECONDS = (5.0, 30.0, 120.0, 600.0)
FIRST_TRY_SECONDS = 5.0


class RemoteTools:
    """The tools of some servers, listed in the background; unreachable servers are retried."""

    def __init__(self, servers: Sequence[ToolServer] = ()) -> None:
        self._servers = servers
        self._closing = threading.Event()
        self._waited_for_until = 0.0
        self._tried = [threading.Event() for _ in servers]
        self._listed: dict[str, tuple[ToolServer, RemoteTool]] = {}
        self._may_ask = True

    def start(self) -> None:
        """Start listing the tools."""
        self._waited_for_until = time.monotonic() + FIRST_TRY_SECONDS
        for server, tried in zip(self._servers, self._tried, strict=True):
            threading.Thread(target=self._list, args=(server, tried), name="tool server", daemon=True).start()

    def close(self) -> None:
        """Close all connections."""
        self._closing.set()
        for server in self._servers:
            server.close()

    def without_confirmations(self) -> RemoteTools:
        """Return the tools without those that need confirmation."""
        fewer = copy(self)
        fewer._may_ask = False
        return fewer

    def schemas(self) -> dict[str, dict[str, Any]]:
        """Return the tools' schemas by name; in the first seconds it waits for servers not tried yet."""
        for tried in self._tried:
            tried.wait(max(0.0, self._waited_for_until - time.monotonic()))
        listed = sorted(self._listed.copy().items())  # Another thread may add to it.
        schemas: dict[str, dict[str, Any]] = {}
        for name, (server, tool) in listed:
            described = storable(f"{tool.description} (A tool of {server.name}.)".strip())
            function = {"name": name, "description": described, "parameters": tool.schema}
            schemas |= {name: {"type": "function", "function": function}} if self.has(name) else {}
        return schemas

    def has(self, name: str) -> bool:
        """Return whether a tool of that name is known."""
        return name in self._listed and (self._may_ask or self._listed[name][1].read_only)

    def run(self, name: str, arguments: dict[str, Any]) -> ToolResult:
        """Call a read-only tool; for another one, ask for confirmation. Raises ToolFailed."""
        server, tool = self._listed[name]
        if tool.read_only:
            return ToolResult(self._called(name, arguments))
        given = json.dumps(arguments, ensure_ascii=False)
        if len(given) > MAX_ASKED_CHARS:
            raise ToolFailed(f"The arguments have {len(given)} characters; a person is asked about {MAX_ASKED_CHARS}.")
        asks = (
            f"Call {quoted_name(tool.name)} of {quoted_name(server.name)} with {quoted_name(given, MAX_ASKED_CHARS)}?"
        )
        return ToolResult(f"Nothing is done yet. The user is asked: {asks}", asks=asks, arguments=arguments)

    def execute_pending(self, pending: dict[str, Any]) -> str:
        """Call a confirmed tool, and return the result."""
        called = quoted_name(pending["tool"])
        try:
            return f"{called} was called and returned:\n\n{self._called(pending['tool'], pending['arguments'])}"
        except ToolFailed as error:
            return f"{called} failed: {error}"

    def _called(self, name: str, arguments: dict[str, Any]) -> str:
        if name not in self._listed:
            raise ToolFailed("Its server is not connected.")
        server, tool = self._listed[name]
        with step("tool"):
            return storable(server.call(tool.name, arguments))

    def _list(self, server: ToolServer, tried: threading.Event) -> None:
        for pause in chain(RETRY_BACKOFF_SECONDS, repeat(RETRY_BACKOFF_SECONDS[-1])):
            try:
                tools = server.tools()
                for tool in tools:
                    # Every endpoint accepts such a name.
                    name = re.sub(r"[^A-Za-z0-9_-]", "_", f"{server.name}__{tool.name}")[:MAX_NAME_CHARS]
                    self._listed[name] = server, tool
                log.info("The tool server %s has %s tools.", server.name, len(tools))
                return
            except ToolFailed as error:
                log.warning("%s Its tools are missing until it answers.", error)
            finally:
                tried.set()
            if self._closing.wait(pause):
                return
