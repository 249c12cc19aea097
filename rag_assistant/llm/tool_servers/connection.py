"""One tool server, used from threads: the SDK's client in its own event loop. Loaded only if a server is configured.

The connection is kept. After an error or timeout it is closed, and the next call connects again.
"""

from __future__ import annotations

import logging
import sys
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any, TypeVar

import httpx2
import mcp
from anyio import fail_after
from anyio.from_thread import start_blocking_portal
from mcp.client.streamable_http import streamable_http_client
from msgspec import Struct

from rag_assistant.records.errors import ToolFailed
from rag_assistant.runtime.bounded_http import bounded_async_client
from rag_assistant.runtime.parent import ending_with_us, parent_variable

if TYPE_CHECKING:
    from anyio.from_thread import BlockingPortal

log = logging.getLogger(__name__)
Given = TypeVar("Given")

# A command may have to download itself at its first start.
CONNECT_TIMEOUT_SECONDS = 60.0
CALL_TIMEOUT_SECONDS = 60.0
CLOSE_TIMEOUT_SECONDS = 2.0
MAX_TOOLS = 100
MAX_RESULT_CHARS = 8000
# A result may have a picture, which nobody gets to see.
MAX_MESSAGE_BYTES = 4_000_000
# The SDK raises the same for a refusal and for a lost connection.
CONNECTION_ENDED = (mcp.types.CONNECTION_CLOSED, mcp.types.REQUEST_TIMEOUT)
NOTHING = "The tool returned nothing."


class RemoteTool(Struct, frozen=True):
    """A tool as its server describes it. One that isn't ``read_only`` needs confirmation."""

    name: str
    description: str
    schema: dict[str, Any]
    read_only: bool


class ToolServer:
    """Lists and calls the tools of one server: a URL, or a command with arguments."""

    def __init__(self, name: str, where: str | Sequence[str]) -> None:
        self.name = name
        self._where = where
        self._lock = threading.Lock()
        self._stack = ExitStack()
        self._portal: BlockingPortal | None = None
        self._client: mcp.Client | None = None

    def tools(self) -> list[RemoteTool]:
        """Return the server's tools. Raises ToolFailed."""

        async def listed(client: mcp.Client) -> list[RemoteTool]:
            tools: list[RemoteTool] = []
            cursor: str | None = None
            while len(tools) < MAX_TOOLS:
                page = await client.list_tools(cursor=cursor)
                tools += [_as_remote(tool) for tool in page.tools]
                cursor = page.next_cursor
                if cursor is None:
                    break
            return tools[:MAX_TOOLS]

        return self._within(CONNECT_TIMEOUT_SECONDS, listed)

    def call(self, name: str, arguments: dict[str, Any]) -> str:
        """Return the text result of a tool. Raises ToolFailed, also for errors the tool reports."""
        result = self._within(CALL_TIMEOUT_SECONDS, lambda client: client.call_tool(name, arguments))
        text = "\n".join(map(_as_text, result.content)) or str(result.structured_content or NOTHING)
        if result.is_error:
            raise ToolFailed(_shortened(text))
        return _shortened(text)

    def close(self) -> None:
        """Close the connection, and stop the command that was started."""
        if self._lock.acquire(timeout=CLOSE_TIMEOUT_SECONDS):
            try:
                self._disconnect()
            finally:
                self._lock.release()

    def _within(self, seconds: float, ask: Callable[[mcp.Client], Awaitable[Given]]) -> Given:
        """Return a result from the connected client, or close the connection. Raises ToolFailed."""

        async def bounded(client: mcp.Client) -> Given:
            with fail_after(seconds):
                return await ask(client)

        # Somebody else is waiting for a connection.
        if not self._lock.acquire(timeout=CONNECT_TIMEOUT_SECONDS):
            raise ToolFailed(f"The tool server {self.name} did not begin in time.")
        try:
            client, portal = self._connected()
        finally:
            self._lock.release()
        try:
            return portal.call(bounded, client)
        except Exception as error:
            if isinstance(error, mcp.MCPError) and error.code not in CONNECTION_ENDED:
                raise ToolFailed(f"The tool server {self.name} refused: {_shortened(error.message)}") from error
            self.close()
            raise self._failed(error, f"did not answer within {seconds:g} seconds") from error

    def _connected(self) -> tuple[mcp.Client, BlockingPortal]:
        """Return the connected client; the lock is held. Raises ToolFailed."""
        if self._client is None or self._portal is None:
            try:
                self._portal = self._stack.enter_context(start_blocking_portal())
                self._client = self._stack.enter_context(self._portal.wrap_async_context_manager(_client(self._where)))
            except Exception as error:
                self._disconnect()
                raise self._failed(error, "did not begin in time") from error
        return self._client, self._portal

    def _disconnect(self) -> None:
        stack, self._stack, self._client, self._portal = self._stack, ExitStack(), None, None
        with suppress(Exception):
            stack.close()

    def _failed(self, error: Exception, if_late: str) -> ToolFailed:
        log.info("The tool server %s failed: %r", self.name, error)
        if isinstance(error, TimeoutError):
            return ToolFailed(f"The tool server {self.name} {if_late}.")
        return ToolFailed(f"The tool server {self.name} could not be reached, or broke off.")


@asynccontextmanager
async def _client(where: str | Sequence[str]) -> AsyncIterator[mcp.Client]:
    """Give a client of a server whose messages are bounded; the SDK would read them whole."""
    async with AsyncExitStack() as stack:
        if isinstance(where, str):
            # How long a call may take is decided above.
            timeout = httpx2.Timeout(None, connect=CONNECT_TIMEOUT_SECONDS)
            http = await stack.enter_async_context(bounded_async_client(MAX_MESSAGE_BYTES, timeout))
            server: Any = streamable_http_client(where, http_client=http, max_sse_event_size=MAX_MESSAGE_BYTES)
        else:
            command, *args = ending_with_us(where, MAX_MESSAGE_BYTES)
            program = mcp.StdioServerParameters(command=command, args=args, env=parent_variable())
            # By default, what sys.stderr was when the SDK was loaded.
            server = mcp.stdio_client(program, errlog=sys.__stderr__ or sys.stderr)
        yield await stack.enter_async_context(
            mcp.Client(server, read_timeout_seconds=CONNECT_TIMEOUT_SECONDS, cache=None)
        )


def _shortened(text: str) -> str:
    if len(text) <= MAX_RESULT_CHARS:
        return text
    return f"{text[:MAX_RESULT_CHARS]}\n[Cut: these are {MAX_RESULT_CHARS} of {len(text)} characters.]"


def _as_remote(tool: mcp.types.Tool) -> RemoteTool:
    read_only = tool.annotations is not None and tool.annotations.read_only_hint is True
    return RemoteTool(tool.name, tool.description or tool.title or "", dict(tool.input_schema), read_only)


def _as_text(block: Any) -> str:
    """Return what a model can read of a piece of a result."""
    resource = getattr(block, "resource", None)
    text = getattr(block, "text", None) or getattr(resource, "text", None)
    return str(text) if text is not None else f"[{block.type}]"
