"""The model of a GGUF file, as an endpoint: its process is started in the background and supervised."""

import importlib.util
import json
import secrets
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from rag_assistant.llm.calls import POLL_INTERVAL_SECONDS, ModelCall
from rag_assistant.llm.endpoint import Endpoint
from rag_assistant.records.errors import QUESTION_KEPT, ModelFileMissing, ModelUnreachable
from rag_assistant.runtime.supervised_process import Process, SupervisedProcess, plain_environment
from rag_assistant.settings.package_files import command_for_extra

START_TIMEOUT_SECONDS = 120.0
# The context that llama.cpp keeps takes memory per token: models that could take more are limited to this.
DEFAULT_CONTEXT_TOKENS = 8192
GGUF = b"GGUF"


class LocalModel:
    """Runs the model of a file and returns its endpoint, with the limit and tool support of the file."""

    def __init__(self, path: str, context_tokens: int | None = None) -> None:
        self._path = Path(path).expanduser()
        self._context_tokens = context_tokens or DEFAULT_CONTEXT_TOKENS
        self._key = secrets.token_hex(16)
        self._queue: list[ModelCall] = []
        self.process: SupervisedProcess[Endpoint] = SupervisedProcess("The local model", self._launch, self._ready)

    def expected_endpoint(self) -> Endpoint:
        """Return the endpoint as far as it is known without waiting."""
        return self.process.service or Endpoint("", None, self._path.stem, self._context_tokens, local=True)

    def endpoint(self, ended: Callable[[], bool] = lambda: False) -> Endpoint:
        """Wait for the endpoint of the model, unless ``ended``. Raises ModelUnreachable."""
        self.process.start()
        endpoint = self.process.wait(START_TIMEOUT_SECONDS, ended)
        if endpoint is None:
            problem = self.process.problem or "It did not start in time."
            raise ModelUnreachable(f"The local model is not running. {problem}{QUESTION_KEPT}")
        return endpoint

    @contextmanager
    def place(self, call: ModelCall) -> Iterator[Iterator[int]]:
        """Give a request its place in the queue, and how many are before it until it is its turn."""
        self._queue.append(call)
        try:
            yield self._before(call)
        finally:
            self._queue.remove(call)

    def _before(self, call: ModelCall) -> Iterator[int]:
        """Yield how many requests are before a call's whenever that changes. Raises AnswerStopped."""
        began, last = time.monotonic(), 0
        while before := self._queue.index(call):
            call.refuse_stopped()
            if before != last:
                yield before
            last = before
            time.sleep(POLL_INTERVAL_SECONDS)
        call.allow_more(time.monotonic() - began)

    def _launch(self) -> Process:
        self._check()
        process = subprocess.Popen(
            [sys.executable, "-m", "rag_assistant.llm.local_model_server", str(self._path), str(self._context_tokens)],
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

    def _check(self) -> None:
        """Raise ModelFileMissing, with what to do, if the model can't run."""
        if importlib.util.find_spec("xllamacpp") is None:
            raise ModelFileMissing(
                "local_model needs the package xllamacpp, which is not installed. "
                f"Run `{command_for_extra('local-model')}`."
            )
        try:
            with self._path.open("rb") as file:
                is_gguf = file.read(len(GGUF)) == GGUF
        except OSError as error:
            raise ModelFileMissing(f"local_model is {self._path}, which cannot be read: {error.strerror}.") from error
        if not is_gguf:
            raise ModelFileMissing(f"local_model is {self._path}, which is not a GGUF file.")

    def _ready(self, process: Process) -> Endpoint | None:
        line = process.stdout.readline().strip() if process.stdout is not None else ""
        if not line:
            return None
        message = json.loads(line)
        if "problem" in message:
            reason = message["problem"].rstrip(".")
            raise ModelFileMissing(f"The file {self._path} cannot be loaded. llama.cpp says: {reason}.")
        return Endpoint(
            f"{message['address']}/v1",
            self._key,
            self._path.stem,
            message["context_tokens"],
            local=True,
            takes_tools=message["takes_tools"],
            billions=message["parameters"] / 1e9,
        )
