"""The processes of a server, and what they hold."""

import contextlib
import re
from pathlib import Path

from tests.testkit.server_process import ServerProcess


def group_of(server: ServerProcess) -> list[int]:
    """Return the processes of a server."""
    assert server.process is not None
    own = []
    for path in Path("/proc").iterdir():
        with contextlib.suppress(OSError):  # One that ended meanwhile.
            if path.name.isdigit():
                group = path.joinpath("stat").read_text().rpartition(") ")[2].split()[2]
                own += [int(path.name)] * (int(group) == server.process.pid)
    return own


def held_by(server: ServerProcess) -> dict[str, int]:
    """Return what the processes of a server hold: threads, descriptors, memory of their own."""
    held = {"threads": 0, "descriptors": 0, "MB": 0}
    for pid in group_of(server):
        with contextlib.suppress(OSError):
            status = Path(f"/proc/{pid}/status").read_text()
            held["threads"] += int(re.findall(r"Threads:\s+(\d+)", status)[0])
            held["MB"] += int(re.findall(r"RssAnon:\s+(\d+)", status)[0]) // 1024
            held["descriptors"] += _descriptors(Path(f"/proc/{pid}/fd"))
    return held


def _descriptors(folder: Path) -> int:
    """Count the descriptors of a process; a server closes their list to everybody but root (Linux 6.2 has the size)."""
    return folder.stat().st_size or len(list(folder.iterdir()))
