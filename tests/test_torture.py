"""Each fault of ``make torture`` in its short form: nothing lost, nothing doubled, nothing wrong."""

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.testkit.server_fork import ServerFork
from tests.torture import stage as stage_module
from tests.torture.__main__ import FAULTS
from tests.torture.stage import Skipped, Stage


@pytest.fixture
def folder() -> Iterator[Path]:
    """Return a folder that a server of any user may be in, and that is gone afterwards."""
    made = Path(tempfile.mkdtemp(prefix="torture"))
    yield made
    shutil.rmtree(made, ignore_errors=True)


# Every time, a turn is killed in tests/test_server.py, and a server among others in tests/test_cluster.py.
@pytest.mark.long
@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_loses_and_doubles_nothing(
    name: str, server_fork: ServerFork, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stage_module, "MAX_RESTART_SECONDS", 60.0)  # How quick a start is, is measured elsewhere.
    try:
        with Stage(server_fork, folder, seed=1, size="short") as stage:
            outcome = FAULTS[name](stage)
    except Skipped as missing:
        pytest.skip(str(missing))
    assert outcome.good, outcome.told()
