"""Kills a server at a named step, as if the power had failed there.

A step is ``module:Class.method:when:count``: before or after the count-th call of a method or function.
"""

import importlib
import os
import signal
import threading
from collections.abc import Callable
from typing import Any


def kill_at(step: str) -> None:
    """Have this process and its group killed at a step."""
    module, name, when, count = step.split(":")
    owner_name, _, method = name.rpartition(".")
    owner = importlib.import_module(module)
    if owner_name:
        owner = getattr(owner, owner_name)
    original: Callable[..., Any] = getattr(owner, method)
    counting, calls = threading.Lock(), 0

    def counted(*arguments: Any, **named: Any) -> Any:
        nonlocal calls
        with counting:
            calls += 1
            due = calls == int(count)
        if due and when == "before":
            os.killpg(0, signal.SIGKILL)
        result = original(*arguments, **named)
        if due and when == "after":
            os.killpg(0, signal.SIGKILL)
        return result

    setattr(owner, method, counted)
