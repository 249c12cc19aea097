"""``rag-assistant mcp``: the Model Context Protocol over standard input and output."""

from __future__ import annotations

import json
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import click

from rag_assistant.cli.errors import named_errors
from rag_assistant.web.mcp.protocol import reply_to
from rag_assistant.web.mcp.tools import AssistantTools

if TYPE_CHECKING:
    from rag_assistant.services import Services

# So that a client hears of small things while an answer is written.
CALLS_AT_ONCE = 8


def mcp_command(services: Services) -> click.Command:
    @click.command("mcp")
    def mcp() -> None:
        """Serve a program that starts this command: the Model Context Protocol on standard input and output."""
        tools, writing = AssistantTools(services), threading.Lock()

        def answer(line: str) -> None:
            reply = reply_to(line, tools)
            if reply.message is not None:
                with writing:
                    click.echo(json.dumps(reply.message))

        with named_errors():
            services.prepare_to_answer()
            try:
                with ThreadPoolExecutor(CALLS_AT_ONCE, "mcp") as calls:
                    for line in sys.stdin:
                        if line.strip():
                            calls.submit(answer, line)
            finally:
                services.close()

    return mcp
