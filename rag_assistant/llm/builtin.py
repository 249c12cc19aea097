"""The built-in model, as an endpoint: its process is started behind the first page and watched."""

from __future__ import annotations

import importlib.util
import secrets
import subprocess
import sys
from collections.abc import Callable

from rag_assistant.errors import ModelFileMissing, ModelUnreachable
from rag_assistant.llm.builtin_server import CONTEXT_TOKENS
from rag_assistant.llm.endpoint import Endpoint
from rag_assistant.records import BUILT_IN_MODEL
from rag_assistant.runtime.model_files import LANGUAGE_MODEL
from rag_assistant.runtime.supervised_process import Process, SupervisedProcess, plain_environment

START_TIMEOUT_SECONDS = 60.0


class BuiltinModel:
    """Runs SmolLM2-135M-Instruct and says where it answers."""

    def __init__(self) -> None:
        self._key = secrets.token_hex(16)
        self.child: SupervisedProcess[Endpoint] = SupervisedProcess("The built-in model", self._launch, self._ready)

    def endpoint(self, ended: Callable[[], bool] = lambda: False) -> Endpoint:
        """Return where the model answers, as soon as it does; give up when ``ended``. Raises ModelUnreachable."""
        self.child.start()
        endpoint = self.child.wait(START_TIMEOUT_SECONDS, ended)
        if endpoint is None:
            problem = self.child.problem or "It did not start in time."
            raise ModelUnreachable(f"The built-in model is not running. {problem} Your question was kept; try again.")
        return endpoint

    def _launch(self) -> Process:
        if importlib.util.find_spec("xllamacpp") is None:
            raise ModelFileMissing(f"The package xllamacpp is not installed. {LANGUAGE_MODEL.remedy}")
        process = subprocess.Popen(
            [sys.executable, "-m", "rag_assistant.llm.builtin_server", str(LANGUAGE_MODEL.checked())],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=plain_environment(),
            text=True,
        )
        if process.stdin is not None:
            process.stdin.write(self._key + "\n")
            process.stdin.flush()
        return process

    def _ready(self, process: Process) -> Endpoint | None:
        address = process.stdout.readline().strip() if process.stdout is not None else ""
        return (
            Endpoint(f"{address}/v1", self._key, BUILT_IN_MODEL, CONTEXT_TOKENS, built_in=True, takes_tools=False)
            if address
            else None
        )
