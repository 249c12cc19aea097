"""settings.json: saved in every way, half written, broken, swapped: the last good values stay, a good file counts."""

import functools
import json
import os
import shutil
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

from tests.testkit.server_process import ServerProcess
from tests.torture.stage import Outcome, Stage, until

IN_FORCE_SECONDS = 2.0
NEVER_SECONDS = 20.0
SWAPS_A_SECOND = 1000


def in_place(file: Path, text: str) -> None:
    """Write over the file."""
    file.write_text(text)


def in_parts(file: Path, text: str) -> None:
    """Empty the file and write ten parts, each a moment later."""
    with file.open("w") as opened:
        for n in range(10):
            opened.write(text[len(text) * n // 10 : len(text) * (n + 1) // 10])
            opened.flush()
            time.sleep(0.02)


def renamed(file: Path, text: str) -> None:
    """Write another file and rename it, as vim and sed -i do."""
    other = file.with_suffix(".new")
    other.write_text(text)
    other.rename(file)


def backup_first(file: Path, text: str) -> None:
    """Move the old file away, then write a new one."""
    if file.exists():
        file.replace(file.with_suffix(".json~"))
    file.write_text(text)


def deleted_first(file: Path, text: str) -> None:
    """Delete, wait, create, as git checkout does."""
    file.unlink(missing_ok=True)
    time.sleep(0.05)
    file.write_text(text)


def same_time(file: Path, text: str) -> None:
    """Write and put the time of the last change back."""
    before = file.stat() if file.exists() else None
    file.write_text(text)
    if before:
        os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))


def copied(file: Path, text: str) -> None:
    """Copy another file over it."""
    other = file.with_suffix(".copy")
    other.write_text(text)
    shutil.copyfile(other, file)


def linked(file: Path, text: str) -> None:
    """Put a symbolic link in its place, as a mounted configuration has it."""
    other = file.with_name(f"target{time.monotonic_ns()}.json")
    other.write_text(text)
    link = file.with_suffix(".link")
    link.symlink_to(other)
    link.rename(file)


def hard_linked(file: Path, text: str) -> None:
    """Put a hard link in its place."""
    other = file.with_name(f"other{time.monotonic_ns()}.json")
    other.write_text(text)
    file.unlink(missing_ok=True)
    os.link(other, file)


def with_mark(file: Path, text: str) -> None:
    """Write with a byte order mark and the line ends of Windows."""
    file.write_bytes(b"\xef\xbb\xbf" + text.replace("\n", "\r\n").encode())


def by_shell(file: Path, text: str) -> None:
    """Let a shell write it."""
    subprocess.run(["sh", "-c", 'cat > "$0"', file], input=text.encode(), check=True)


def appended(file: Path, text: str) -> None:
    """Write the first half, and then append the second."""
    file.write_text(text[: len(text) // 2])
    with file.open("a") as opened:
        opened.write(text[len(text) // 2 :])


WAYS: tuple[Callable[[Path, str], None], ...] = (
    *(in_place, in_parts, renamed, backup_first, deleted_first, same_time),
    *(copied, linked, hard_linked, with_mark, by_shell, appended),
)
CONTENTS = {
    "nothing": b"",
    "no JSON": b"max_history_turns = 3",
    "a list": b"[]",
    "a wrong type": b'{"max_history_turns": "three"}',
    "a number too small": b'{"max_history_turns": -3}',
    "an unknown name": b'{"max_histroy_turns": 3}',
    "twice": b'{"max_history_turns": 3, "max_history_turns": "x"}',
    "bytes": bytes(range(256)),
    "deep": b"[" * 100_000,
}
BROKEN: dict[str, Callable[[Path], object]] = {
    name: functools.partial(Path.write_bytes, data=content) for name, content in CONTENTS.items()
} | {"100 MB": lambda file: file.write_bytes(b" " * 100_000_000)}


ODD_FILES: dict[str, Callable[[Path], object]] = {
    "gone": lambda _file: None,
    "a pipe": lambda file: os.mkfifo(file),
    "a folder": lambda file: file.mkdir(),
    "a link to itself": lambda file: file.symlink_to(file),
    "a link to nothing": lambda file: file.symlink_to(file.with_name("nowhere")),
    "a device": lambda file: file.symlink_to("/dev/zero"),
}


def saved_and_broken(stage: Stage) -> Outcome:
    """Save good files in twelve ways and broken ones in many; ask what is in force after each."""
    outcome, stub = Outcome(), stage.echo()
    server = stage.server(stub.url)
    file = Path(server.environment["SETTINGS_FILE"])
    server.start("/readyz")
    turns, slowest = 10, 0.0
    for number in stage.rounds(1, 20):
        for way in WAYS[number % 4 :: stage.count(4, 1)]:
            turns += 1
            way(file, written(turns))
            slowest = max(slowest, _in_force(server, turns, outcome, way.__name__))
            outcome.tried += 1
    outcome.note = f"a change was in force after {slowest:.1f} s at most"
    if stage.is_full and slowest > IN_FORCE_SECONDS:
        outcome.wrong.append(outcome.note)
    text = written(turns)
    for end in range(0, len(text), stage.count(9, 1)):
        file.write_text(text[:end])
        _is_still(server, turns, outcome, f"cut at byte {end}")
    for name, make in list({**BROKEN, **ODD_FILES}.items())[:: stage.count(5, 1)]:
        renamed(file, written(turns))
        if not until(lambda: _problem(server) is None, NEVER_SECONDS):
            outcome.wrong.append(f"before {name}: {_problem(server)}")
        file.unlink()
        make(file)
        if not until(lambda: _problem(server) is not None, NEVER_SECONDS):
            outcome.wrong.append(f"{name}: nothing is told")
        _is_still(server, turns, outcome, name)
        if file.is_dir():
            file.rmdir()
    _swapped(server, file, turns, stage.count(1, 10), outcome)
    renamed(file, written(turns + 1))
    _in_force(server, turns + 1, outcome, "a good file at last")
    return outcome


def written(turns: int) -> str:
    """Return the text of a good file."""
    return json.dumps({"max_history_turns": turns, "chunk_chars": 900, "instructions": "Büro 🦢"}, ensure_ascii=False)


def _problem(server: ServerProcess) -> str | None:
    problem: str | None = server.call("GET", "/readyz")[1]["settings_problem"]
    return problem


def _value(server: ServerProcess) -> int:
    listed = server.call("GET", "/api/settings")[1]["settings"]
    return int(next(one["value"] for one in listed if one["name"] == "max_history_turns"))


def _in_force(server: ServerProcess, turns: int, outcome: Outcome, way: str) -> float:
    """Wait until a value is in force, and return how long that took."""
    began = time.monotonic()
    if not until(lambda: _value(server) == turns, NEVER_SECONDS):
        outcome.lost.append(f"{way}: {turns} never came into force")
    return time.monotonic() - began


def _is_still(server: ServerProcess, turns: int, outcome: Outcome, case: str) -> None:
    outcome.tried += 1
    if (found := _value(server)) != turns:
        outcome.wrong.append(f"{case}: {found} is in force, not {turns}")


def _swapped(server: ServerProcess, file: Path, turns: int, seconds: int, outcome: Outcome) -> None:
    """Swap a good file for a broken one and back a thousand times a second."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        for _ in range(SWAPS_A_SECOND // 20):
            renamed(file, '{"max_history_turns": ')
            renamed(file, written(turns))
            time.sleep(1 / SWAPS_A_SECOND)
        _is_still(server, turns, outcome, "swapped")
