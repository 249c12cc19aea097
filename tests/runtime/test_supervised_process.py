"""A process that we start behind the scenes: there again when it was killed, and gone when we are done."""

import os
import signal
import subprocess

import psutil
import pytest

from rag_assistant.runtime import supervised_process
from rag_assistant.runtime.supervised_process import SupervisedProcess
from tests.web.conftest import until


def launch() -> subprocess.Popen[str]:
    return subprocess.Popen(["cat"], stdin=subprocess.PIPE, text=True)


def test_a_process_that_was_killed_is_started_again_until_we_close(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(supervised_process, "RESTART_BACKOFF_SECONDS", (0.01,))
    watched = SupervisedProcess("cat", launch, lambda process: process.pid)
    watched.start()
    first = watched.wait(60)
    assert first is not None
    os.kill(first, signal.SIGKILL)
    until(lambda: watched.service not in (None, first))
    again = watched.service
    assert again is not None
    watched.close()
    assert not psutil.pid_exists(again)
    until(lambda: watched.state == "starting" and watched.service is None)
    assert watched.pid == again, "none is started any more"
