"""Agents that work in a folder: each is asked about a file there, reads it (aider sends it along), and answers."""

import json
import os
import re
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from bench.clients.model import ANSWER, ToolModel, instance
from tests.testkit.server_process import ServerProcess
from tests.testkit.stub_model import Reply, Seen

QUESTION = "What does the lamp of the lighthouse burn?"
LAMP = "The lamp of the lighthouse burns rapeseed oil."
READERS = re.compile(r"(?:Read|read|read_file|Bash|bash|shell|exec_command)\Z")
SECONDS = 180


class ReadingModel(ToolModel):
    """Reads lamp.md in its ``folder`` with the first tool that can, then answers."""

    folder = Path()

    def next_reply(self, seen: Seen) -> Reply:
        """Return a call of a tool, or the answer behind its result."""
        functions = [tool["function"] for tool in seen.body.get("tools", ())]
        able = next((one for one in functions if READERS.match(one["name"])), None)
        if able is None or any(one["role"] == "tool" for one in seen.body["messages"]):
            return Reply(ANSWER)
        schema = able["parameters"]
        arguments = instance(schema, schema)
        for name in arguments:
            if name in ("command", "cmd"):
                arguments[name] = "cat lamp.md"
            elif "path" in name:
                arguments[name] = str(self.folder / "lamp.md")
        return Reply(tool_calls=[{"id": f"call_{len(self.requests)}", "name": able["name"], "arguments": arguments}])


def commands(url: str, folder: Path) -> dict[str, tuple[str, list[str], dict[str, str]]]:
    """Return the agents: package, command and environment of each, after writing their settings to the folder."""
    v1, name = f"{url}/v1", "rag-assistant"
    provider: dict[str, Any] = {"npm": "@ai-sdk/openai-compatible", "models": {name: {"name": name}}}
    provider["options"] = {"baseURL": v1, "apiKey": "none"}
    (folder / "opencode.json").write_text(json.dumps({"provider": {"rag": provider}}))
    model = {"name": name, "provider": "openai", "model": name, "apiBase": v1, "apiKey": "none"}
    settings = {"name": "rag", "version": "0.0.1", "schema": "v1", "models": [model | {"capabilities": ["tool_use"]}]}
    (folder / "continue.yaml").write_text(json.dumps(settings))
    codex = f'model_providers.rag={{name="rag",base_url="{v1}",wire_api="responses"}}'
    claude = {"ANTHROPIC_BASE_URL": url, "ANTHROPIC_AUTH_TOKEN": "none", "ANTHROPIC_MODEL": name}
    claude |= {"ANTHROPIC_DEFAULT_HAIKU_MODEL": f"{name}-plain", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1"}
    qwen = {"OPENAI_BASE_URL": v1, "OPENAI_API_KEY": "none", "OPENAI_MODEL": name}
    chosen = ["-c", f"model={name}", "-c", "model_provider=rag", "-c", codex]
    aider = ["aider", "--model", f"openai/{name}", "--openai-api-base", v1, "--openai-api-key", "none", "--no-git"]
    aider += ["--yes-always", "--no-check-update", "--no-show-model-warnings", "--analytics-disable"]
    return {
        "Codex CLI": ("@openai/codex", ["codex", "exec", "--skip-git-repo-check", *chosen, QUESTION], {}),
        "Claude Code": ("@anthropic-ai/claude-code", ["claude", "-p", QUESTION, "--allowedTools", "Bash"], claude),
        "opencode": ("opencode-ai", ["opencode", "run", "-m", f"rag/{name}", QUESTION], {}),
        "Qwen Code": ("@qwen-code/qwen-code", ["qwen", "--approval-mode", "yolo", "-p", QUESTION], qwen),
        "Continue": ("@continuedev/cli", ["cn", "--config", "continue.yaml", "--auto", "-p", QUESTION], {}),
        "aider": ("aider-chat", [*aider, "--message", QUESTION, "lamp.md"], {}),
    }


def table(installed: Path, version_of: Callable[[str], str]) -> str:
    """Run the agents that are ``installed`` against a server of their own, and return a table of what they did."""
    model = ReadingModel()
    rows = "| agent | version | requests to the model | with what it read | answered |\n|---|---|---|---|---|\n"
    with tempfile.TemporaryDirectory() as data, tempfile.TemporaryDirectory() as home:
        folder = Path(home) / "work"
        folder.mkdir()
        model.folder = folder
        (folder / "lamp.md").write_text(LAMP)
        server = ServerProcess(Path(data), OPENAI_BASE_URL=model.url, OPENAI_MODEL="stub-model", OPENAI_API_KEY="none")
        server.start("/readyz")
        try:
            for name, (package, command, environment) in commands(server.url, folder).items():
                print(name, "...", flush=True)
                model.requests.clear()
                programs = installed / ("aider/bin" if name == "aider" else "js/node_modules/.bin")
                done = subprocess.run(
                    [str(programs / command[0]), *command[1:]],
                    cwd=folder,
                    env={"PATH": os.environ["PATH"], "HOME": home, "TERM": "dumb", "IS_SANDBOX": "1"} | environment,
                    stdin=subprocess.DEVNULL,
                    capture_output=True,
                    text=True,
                    timeout=SECONDS,
                    check=False,
                )
                read = sum("burns rapeseed" in str(one.messages) for one in model.requests)
                answered = "yes" if ANSWER in done.stdout and read else f"no: {done.stdout[-200:]}{done.stderr[-200:]}"
                told = f"{name} (`{package}`) | {version_of(package)} | {len(model.requests)} | {read} | {answered}"
                rows += f"| {told} |\n"
                print(told, flush=True)
        finally:
            server.terminate()
            model.close()
    return rows
