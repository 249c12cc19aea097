"""Run every client against a server, and write the results to transcripts.md.

``make clients`` installs them in their own folders and runs this.
"""

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from bench.clients.coding_agents import table
from bench.clients.model import ToolModel
from tests.testkit.server_process import PROJECT, ServerProcess

HERE = Path(__file__).parent
INSTALLED = PROJECT / ".venv-clients"
PAGE = HERE / "transcripts.md"
LAMP = b"# Lighthouse\n\nThe lamp of the lighthouse burns rapeseed oil. It is trimmed every four hours by the keeper."
PYTHON = INSTALLED / "python" / "bin" / "python"
AIDER = INSTALLED / "aider" / "bin" / "python"
OPEN_WEBUI = INSTALLED / "open-webui" / "bin" / "python"
CLIENTS = {
    "openai SDK (Python)": (PYTHON, "openai_sdk.py", "openai"),
    "openai SDK (JavaScript)": (None, "openai_sdk.mjs", "openai"),
    "anthropic SDK (Python)": (PYTHON, "anthropic_sdk.py", "anthropic"),
    "anthropic SDK (JavaScript)": (None, "anthropic_sdk.mjs", "@anthropic-ai/sdk"),
    "LangChain": (PYTHON, "langchain_chat.py", "langchain-openai"),
    "litellm": (PYTHON, "litellm_chat.py", "litellm"),
    "pydantic-ai": (PYTHON, "pydantic_ai_chat.py", "pydantic-ai-slim"),
    "openai-agents": (PYTHON, "openai_agents_chat.py", "openai-agents"),
    "smolagents": (PYTHON, "smolagents_chat.py", "smolagents"),
    "AI SDK": (None, "ai_sdk.mjs", "ai"),
    "llm": (PYTHON, "llm_cli.py", "llm"),
    "Open WebUI": (OPEN_WEBUI, "open_webui_chat.py", "open-webui"),
}
MINUTES = 10


def main() -> None:
    """Run the clients that are installed, and write the page."""
    model = ToolModel()
    with tempfile.TemporaryDirectory() as folder:
        server = ServerProcess(
            Path(folder), OPENAI_BASE_URL=model.url, OPENAI_MODEL="stub-model", OPENAI_API_KEY="none"
        )
        server.start("/readyz")
        try:
            form = (
                b'--b\r\nContent-Disposition: form-data; name="file"; filename="lamp.md"\r\n\r\n'
                + LAMP
                + b"\r\n--b--\r\n"
            )
            server.send("POST", "/api/documents", form, "multipart/form-data; boundary=b")
            server.wait_for_documents()
            told = [section(name, f"{server.url}/v1", server.url) for name in CLIENTS]
            agents = table(INSTALLED, lambda package: version(AIDER if package == "aider-chat" else None, package))
            told.append(
                f"### Agents\n\nEach is asked about a file in its folder ([coding_agents.py](coding_agents.py)).\n\n{agents}\n"
            )
        finally:
            server.terminate()
            model.close()
    before, _, rest = PAGE.read_text().partition("<!-- transcripts -->")
    _, _, after = rest.partition("<!-- /transcripts -->")
    PAGE.write_text(f"{before}<!-- transcripts -->\n\n{''.join(told)}<!-- /transcripts -->{after}")


def section(name: str, address: str, url: str) -> str:
    """Return a client's output as a section of the page."""
    python, program, package = CLIENTS[name]
    command = [str(python), str(HERE / program)]
    if python is None:
        # Node looks for packages beside the program.
        shutil.copy(HERE / program, INSTALLED / "js" / program)
        command = ["node", program]
    print(name, "...", flush=True)
    done = subprocess.run(
        [*command, address], cwd=INSTALLED / "js", capture_output=True, text=True, timeout=60 * MINUTES, check=False
    )
    if done.returncode:
        sys.exit(f"{name} failed:\n{done.stdout}{done.stderr}")
    printed = done.stdout.strip().replace(url, "http://127.0.0.1:8000")
    print(printed, flush=True)
    source = f"[{program}]({program})"
    return f"### {name}\n\n`{package}` {version(python, package)}, {source}:\n\n```\n{printed}\n```\n\n"


def version(python: Path | None, package: str) -> str:
    """Return the version of a client."""
    if python is None:
        script = f"console.log(JSON.parse(require('fs').readFileSync('node_modules/{package}/package.json')).version)"
        command = ["node", "-e", script]
    else:
        command = [str(python), "-c", f"from importlib.metadata import version; print(version({package!r}))"]
    return subprocess.run(command, cwd=INSTALLED / "js", capture_output=True, text=True, check=True).stdout.strip()


if __name__ == "__main__":
    main()
