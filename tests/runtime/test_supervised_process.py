"""A process that we start behind the scenes: there again when it was killed, and gone when we are done."""

import os
import signal
import subprocess
import threading

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


def test_while_it_is_launched_again_after_a_failure_it_is_starting_and_waited_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(supervised_process, "RESTART_BACKOFF_SECONDS", (0.01,))
    launches, may_serve = 0, threading.Event()

    def ready(process: subprocess.Popen[str]) -> int | None:
        nonlocal launches
        launches += 1
        if launches == 1:
            process.kill()
            return None
        may_serve.wait(60)
        return process.pid

    watched = SupervisedProcess("cat", launch, ready)
    watched.start()
    try:
        until(lambda: launches == 2)
        assert watched.state == "starting"
        assert watched.problem == "Its process ended before it was ready."
        threading.Timer(0.5, may_serve.set).start()
        assert watched.wait(60) == watched.pid
        assert watched.problem is None
    finally:
        watched.close()


def test_one_that_is_slow_to_start_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(supervised_process, "SLOW_SECONDS", 0.1)
    may_serve = threading.Event()
    watched = SupervisedProcess("cat", launch, lambda process: process.pid if may_serve.wait(60) else None)
    watched.start()
    try:
        until(lambda: watched.state == "slow")
        first = watched.pid
        assert watched.wait(0.2) is None
        may_serve.set()
        assert watched.wait(60) == first, "it was not started again"
        assert watched.state == "ready"
    finally:
        watched.close()


def test_what_keeps_it_from_starting_is_told_and_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(supervised_process, "RESTART_BACKOFF_SECONDS", (0.01, 60.0))
    pids = []

    def ready(process: subprocess.Popen[str]) -> None:
        pids.append(process.pid)
        raise ValueError("Its file is no model.")

    watched: SupervisedProcess[int] = SupervisedProcess("cat", launch, ready)
    watched.start()
    until(lambda: watched.state == "failed")
    assert watched.problem == "Its file is no model."
    assert watched.wait(60) is None, "nobody waits for one that failed"
    watched.close()
    until(lambda: not psutil.pid_exists(pids[0]))


def test_one_that_is_closed_while_it_is_launched_is_ended() -> None:
    launching, may_launch, processes = threading.Event(), threading.Event(), []

    def slowly() -> subprocess.Popen[str]:
        launching.set()
        may_launch.wait(60)
        processes.append(launch())
        return processes[0]

    watched = SupervisedProcess("cat", slowly, lambda process: process.pid)
    watched.start()
    launching.wait(60)
    closing = threading.Thread(target=watched.close)
    closing.start()
    may_launch.set()
    closing.join(60)
    assert processes[0].poll() is not None
