"""A tool server made with the SDK: ``python -m tests.testkit.tool_server stdio FILE``. The tool ``keep`` writes to the
file.
"""

import os
import sys
import time
from pathlib import Path

from mcp.server import MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp.types import ToolAnnotations

READ_ONLY = ToolAnnotations(read_only_hint=True)


def tool_server(file: Path) -> MCPServer:
    """Return the server."""
    server = MCPServer("test", log_level="CRITICAL")

    @server.tool(annotations=READ_ONLY)
    def add(a: int, b: int) -> str:
        """Add two numbers."""
        return f"The sum is {a + b}."

    @server.tool(annotations=READ_ONLY)
    def fail() -> str:
        """Fail."""
        raise ToolError("The tool's own reason.")

    @server.tool(annotations=READ_ONLY)
    def large(characters: int = 20_000) -> str:
        """Return much."""
        return "x" * characters

    @server.tool(annotations=READ_ONLY)
    def slow(seconds: float) -> str:
        """Take a while."""
        time.sleep(seconds)
        return "Done."

    @server.tool(annotations=READ_ONLY)
    def die() -> str:
        """End the process."""
        os._exit(3)

    @server.tool()
    def keep(text: str) -> str:
        """Keep a text."""
        file.write_text(text)
        return f"Kept {len(text)} characters."

    return server


if __name__ == "__main__":
    tool_server(Path(sys.argv[-1])).run("stdio")
