"""A library that works on a document until it is killed at a given step.

``python -m tests.documents.ingest_process STEP FILE``

The step is ``module:Class.method:when:count``: before or after the count-th call of the method.
"""

from __future__ import annotations

import importlib
import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from rag_assistant.factory import create_app
from rag_assistant.retrieval.embeddings import minilm
from rag_assistant.web.services import Services
from testkit.embedders import WordHashEmbedder


def kill_at(step: str) -> None:
    """See to it that this process is killed at a step."""
    module, name, when, count = step.split(":")
    owner_name, _, method = name.rpartition(".")
    owner = importlib.import_module(module)
    if owner_name:
        owner = getattr(owner, owner_name)
    original: Callable[..., Any] = getattr(owner, method)
    calls = 0

    def counted(*arguments: Any, **named: Any) -> Any:
        nonlocal calls
        calls += 1
        if when == "before" and calls == int(count):
            os.kill(os.getpid(), signal.SIGKILL)
        result = original(*arguments, **named)
        if when == "after" and calls == int(count):
            os.kill(os.getpid(), signal.SIGKILL)
        return result

    setattr(owner, method, counted)


def main(step: str, file: str) -> None:
    """Take a file in and work on it."""
    minilm.MiniLM = WordHashEmbedder  # type: ignore[assignment, misc]
    app = create_app(dict(os.environ))
    services: Services = app.extensions["assistant"]
    services.guide = Path("no-guide")
    services.prepare()
    if step != "none":
        kill_at(step)
    services.library.start()
    if file:
        with Path(file).open("rb") as opened:
            services.library.accept(opened, "fact.txt")
    end = time.monotonic() + 30
    while time.monotonic() < end and any(one.state != "ready" for one in services.documents.page(100)):
        time.sleep(0.02)
    services.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
