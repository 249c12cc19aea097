"""The data folder: its permissions, and the locks of the processes that use it."""

import contextlib
import fcntl
import logging
import os
import re
import shutil
import stat
import tempfile
import time
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from msgspec import Struct

from rag_assistant.records.errors import SettingsError

log = logging.getLogger(__name__)

LOCK_FILE = "server.lock"
COMMANDS_FILE = "commands.lock"
INSTALLATION_FILE = "installation"
LEFTOVER = re.compile(r"(restore|backup)-\w{8}|assistant-schema-\d{4}\.db\.\d+\.part")
POLL_INTERVAL_SECONDS = 0.05
MIN_FREE_SHARE = 0.1


def open_data_dir(path: Path) -> Path:
    """Return the folder, creating it if needed, which is logged: another one may have been meant.

    From then on, files of this process are readable only by its owner, and so is a new folder. Raises SettingsError if
    it can't be created or written to.
    """
    os.umask(0o077)
    try:
        is_new = not path.exists()
        path.mkdir(parents=True, exist_ok=True)
        (path / LOCK_FILE).open("a").close()
    except OSError as error:
        raise SettingsError(
            f'data_dir is "{path}": cannot create or write to this folder ({error.strerror}). '
            "Set DATA_DIR to a writable folder."
        ) from error
    if is_new:
        log.warning("New data folder: %s. If your data is in another folder, set DATA_DIR to that folder.", path)
    return path


def open_to_others(*paths: Path) -> Iterator[str]:
    """Yield a sentence for each file or folder that every user of this machine can open."""
    for path in paths:
        mode = stat.S_IMODE(path.stat().st_mode) if path.exists() else 0
        if mode & stat.S_IRWXO:
            yield f"Every user of this machine can open {path}. To keep them out: chmod {mode & ~stat.S_IRWXO:o} {path}"


def drop_unused(data_dir: Path) -> None:
    """Delete a data folder that contains only what every command creates; leave others as they are."""
    paths = list(data_dir.iterdir())
    if {path.name for path in paths} <= {LOCK_FILE, COMMANDS_FILE, INSTALLATION_FILE}:
        for path in paths:
            path.unlink()
        with contextlib.suppress(OSError):  # Something may be mounted there.
            data_dir.rmdir()


def installation_id(data_dir: Path) -> str:
    """Return this installation's id, made at its first start; it tells our turns apart. Raises SettingsError."""
    path = data_dir / INSTALLATION_FILE
    try:
        if not size_of(path):
            with _one_at_a_time(data_dir):
                if not size_of(path):  # Nobody was faster.
                    with written_whole(path) as file:
                        file.write(uuid.uuid4().hex.encode())
        return path.read_text()
    except OSError as error:
        raise SettingsError(f'data_dir is "{data_dir}": cannot write to it ({error.strerror}).') from error


@contextlib.contextmanager
def written_whole(path: Path) -> Iterator[IO[bytes]]:
    """Give a file for its owner alone to write; it has its name once it is complete, and otherwise no file is left."""
    part = path.with_name(f"{path.name}.part")
    try:
        with os.fdopen(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)


@contextlib.contextmanager
def working_folder(data_dir: Path, prefix: str) -> Iterator[Path]:
    """Give a folder that is deleted afterwards, and locked until then: see ``drop_leftovers``."""
    with tempfile.TemporaryDirectory(prefix=prefix, dir=data_dir) as name, _one_at_a_time(Path(name)):
        yield Path(name)


def drop_leftovers(data_dir: Path) -> None:
    """Delete the copies of everything that killed backups, restores and upgrades left behind, and log it."""
    for path in data_dir.iterdir():
        if LEFTOVER.fullmatch(path.name) and not _is_worked_on(path):
            shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)
            log.warning("%s was deleted: the backup, restore or upgrade that made it was killed.", path)


def _is_worked_on(path: Path) -> bool:
    """Return whether a process still works on a folder, which it has locked, or a copy, which has its number."""
    if not path.is_dir():
        process = path.name.split(".")[-2]
        return process != str(os.getpid()) and Path("/proc", process).exists()
    opened = os.open(path, os.O_RDONLY)
    try:
        return not _could_lock(opened, fcntl.LOCK_EX)
    finally:
        os.close(opened)


@contextlib.contextmanager
def _one_at_a_time(folder: Path) -> Iterator[None]:
    """Take a file lock: several processes that start together may share a folder of files."""
    opened = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(opened, fcntl.LOCK_EX)
        yield
    finally:
        os.close(opened)


def size_of(path: Path) -> int:
    """Return the bytes of a file, or of all files in a folder; 0 if it doesn't exist."""
    try:
        return sum(map(size_of, path.iterdir())) if path.is_dir() else path.stat().st_size
    except FileNotFoundError:
        return 0


class Disk(Struct):
    """The disk of the data folder."""

    data_dir: Path
    was_low: bool = False

    def usage(self) -> tuple[int, int]:
        """Return the free bytes and all bytes."""
        disk = shutil.disk_usage(self.data_dir)
        return disk.free, disk.total

    @property
    def is_low(self) -> bool:
        """Whether less than 10 % is free."""
        free, total = self.usage()
        return free < MIN_FREE_SHARE * total

    def watch(self) -> None:
        """Log it when space becomes low."""
        was_low, self.was_low = self.was_low, self.is_low
        if self.was_low and not was_low:
            free, total = self.usage()
            log.warning("Only %.1f of %.1f GB are free on the disk of the data folder.", free / 1e9, total / 1e9)


def is_locked(data_dir: Path) -> bool:
    """Return whether a server, or a command that processes documents, has locked the folder."""
    with (data_dir / LOCK_FILE).open("a+") as lock_file:
        return not _could_lock(lock_file, fcntl.LOCK_SH)


def lock_data_dir(data_dir: Path, patience_seconds: float = 0.0) -> IO[str]:
    """Lock the folder for one server. Raises SettingsError if another server keeps it for ``patience_seconds``."""
    lock_file = (data_dir / LOCK_FILE).open("a+")
    end = time.monotonic() + patience_seconds
    while not _could_lock(lock_file, fcntl.LOCK_EX):
        if time.monotonic() >= end:
            lock_file.close()
            raise SettingsError(
                f'data_dir is "{data_dir}"; a server uses it already. Stop it, or set another DATA_DIR.'
            )
        time.sleep(POLL_INTERVAL_SECONDS)
    return lock_file


def join_commands(data_dir: Path) -> tuple[IO[str], bool]:
    """Register a command that answers questions, until the file is closed; return whether it is the only one."""
    lock_file = (data_dir / COMMANDS_FILE).open("a+")
    alone = _could_lock(lock_file, fcntl.LOCK_EX)
    fcntl.flock(lock_file, fcntl.LOCK_SH)
    return lock_file, alone


def _could_lock(file: IO[str] | int, kind: int) -> bool:
    """Lock a file; return False if another process has locked it."""
    try:
        fcntl.flock(file, kind | fcntl.LOCK_NB)
    except OSError:
        return False
    return True
