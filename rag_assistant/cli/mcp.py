"""``rag-assistant mcp``: the Model Context Protocol over standard input and output."""

from __future__ import annotations

import json
import math
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import click

from rag_assistant.cli.commands import services_command
from rag_assistant.cli.documents import POLL_INTERVAL_SECONDS, count_unread, process_pending, unread_in_words

if TYPE_CHECKING:
    from rag_assistant.services import Services
    from rag_assistant.web.mcp.tools import AssistantTools

# So that small requests are answered while an answer is being generated.
CALLS_AT_ONCE = 8
# Clients give up after a minute.
MAX_READING_WAIT_SECONDS = 30.0
# While this lasts, no server can start on this data folder.
MAX_EMBEDDING_SECONDS = 600.0


@services_command("mcp", answers=True)
def mcp(services: Services) -> None:
    """Serve the Model Context Protocol on standard input and output, to the program that starts this command."""
    from rag_assistant.web.mcp.protocol import reply_to
    from rag_assistant.web.mcp.tools import AssistantTools

    reading = threading.Thread(
        target=process_pending, args=(services, math.inf, MAX_EMBEDDING_SECONDS), name="reading", daemon=True
    )
    reading.start()
    tools, writing = ReadFirst(AssistantTools(services), services, reading), threading.Lock()

    def answer(line: str) -> None:
        reply = reply_to(line, tools)
        if reply.message is not None:
            with writing:
                click.echo(json.dumps(reply.message))

    with ThreadPoolExecutor(CALLS_AT_ONCE, "mcp") as calls:
        for line in sys.stdin:
            if line.strip():
                calls.submit(answer, line)


class ReadFirst:
    """The tools; calls wait a while until all documents are read, and results say how many aren't."""

    def __init__(self, tools: AssistantTools, services: Services, reading: threading.Thread) -> None:
        self._tools = tools
        self._services = services
        self._reading = reading
        self.listed = tools.listed

    def call(self, name: str, arguments: Any) -> dict[str, Any]:
        """Return the result of a call. Raises RpcError for an unknown tool."""
        end = time.monotonic() + MAX_READING_WAIT_SECONDS
        while (unread := count_unread(self._services)) and self._reading.is_alive() and time.monotonic() < end:
            time.sleep(POLL_INTERVAL_SECONDS)
        result = self._tools.call(name, arguments)
        if unread:
            result["content"].append({"type": "text", "text": unread_in_words(unread)})
        return result
