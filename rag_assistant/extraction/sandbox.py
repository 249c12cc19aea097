"""Restrict a process to what reading a document needs: limited memory and time, no files, network or programs.

sandbox_process.py starts it: ``python -m rag_assistant.extraction.sandbox MODULE MEMORY_MB CPU_SECONDS NICENESS FILE
ARGUMENT ...`` prints what the module's ``work`` yields. Without a FILE, that reads the input of the process.

Linux only; elsewhere only resource limits are set. seccomp(2) allows threads, but no new processes; no sockets except
pairs within the process; files are opened read-only.
"""

import ctypes
import errno
import os
import platform
import resource
import struct
import sys
from collections.abc import Iterable, Iterator
from importlib import import_module
from pathlib import Path
from pkgutil import get_data

from msgspec import Struct
from msgspec.json import decode as from_json
from msgspec.json import encode

from rag_assistant.extraction.sandbox_process import FAILED_CLEANLY, Failure
from rag_assistant.records.errors import ExtractionFailed
from rag_assistant.runtime.parent import end_with_parent
from rag_assistant.settings.package_files import FILES, IS_INSTALLED, PACKAGE

PR_SET_SECCOMP, FILTER = 22, 2

# Instructions of the kernel's filter language: the operation, and the jumps for "true" and "false".
LOAD, IF_EQUAL, IF_AT_LEAST, IF_ANY_BIT, RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
CALL_NUMBER_AT, MACHINE_AT, ARGUMENTS_AT = 0, 4, 16
ALLOW, ERROR = 0x7FFF0000, 0x00050000
REFUSE, UNKNOWN = ERROR | errno.EACCES, ERROR | errno.ENOSYS
FIRST_FOREIGN_CALL = 0x40000000
WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC
CLONE_THREAD = 0x10000
TCGETS = 0x5401
F_DUPFD, F_GETFD, F_SETFD, F_GETFL, F_DUPFD_CLOEXEC = 0, 1, 2, 3, 1030

# The id of each architecture, and its column in the tables below. Numbers: the kernel's syscall_64.tbl and unistd.h.
MACHINES = {"x86_64": (0xC000003E, 0), "aarch64": (0xC00000B7, 1)}
NONE = -1

# By what they are for, with their number on each architecture.
CALLS: dict[str, dict[str, tuple[int, int]]] = from_json(get_data(str(__package__), "sandbox_calls.json") or b"")

# With the error "unknown" the C library creates threads with ``clone``, whose flags can be checked.
CLONE3 = 435


class _Limited(Struct, frozen=True):
    """A call restricted by an argument: the outcome if it matches ``values``, and the opposite otherwise."""

    numbers: tuple[int, int]
    argument: int
    instruction: int
    values: tuple[int, ...]
    met: int


def _limited() -> tuple[_Limited, ...]:
    """Return the restrictions by argument: reading only, threads only, signals and limits of this process only."""
    return (
        _Limited((2, NONE), 1, IF_ANY_BIT, (WRITING,), REFUSE),  # open
        _Limited((257, 56), 2, IF_ANY_BIT, (WRITING,), REFUSE),  # openat
        _Limited((56, 220), 0, IF_ANY_BIT, (CLONE_THREAD,), ALLOW),  # clone
        _Limited((234, 131), 0, IF_EQUAL, (os.getpid(),), ALLOW),  # tgkill, with which abort() ends
        _Limited((302, 261), 0, IF_EQUAL, (0,), ALLOW),  # prlimit64
        _Limited((16, 29), 1, IF_EQUAL, (TCGETS,), ALLOW),  # ioctl
        _Limited((72, 25), 1, IF_EQUAL, (F_DUPFD, F_GETFD, F_SETFD, F_GETFL, F_DUPFD_CLOEXEC), ALLOW),  # fcntl
    )


def limit_calls() -> bool:
    """Permanently refuse every other system call; return whether that was possible.

    The process must have given up new privileges before (``PR_SET_NO_NEW_PRIVS``).
    """
    if platform.machine() not in MACHINES:
        return False
    program = _program(*MACHINES[platform.machine()])
    held = ctypes.create_string_buffer(program, len(program))
    described = struct.pack("HxxxxxxQ", len(program) // 8, ctypes.addressof(held))
    libc = ctypes.CDLL(None, use_errno=True)
    return bool(libc.prctl(PR_SET_SECCOMP, FILTER, ctypes.create_string_buffer(described, len(described)), 0, 0) == 0)


def _program(mark: int, column: int) -> bytes:
    """Return the filter that the kernel runs before each system call."""
    lines = [
        (LOAD, 0, 0, MACHINE_AT),
        (IF_EQUAL, 1, 0, mark),
        (RETURN, 0, 0, REFUSE),
        (LOAD, 0, 0, CALL_NUMBER_AT),
        (IF_AT_LEAST, 0, 1, FIRST_FOREIGN_CALL),
        (RETURN, 0, 0, REFUSE),
    ]
    for numbers in (numbers for calls in CALLS.values() for numbers in calls.values()):
        if numbers[column] != NONE:
            lines += [(IF_EQUAL, 0, 1, numbers[column]), (RETURN, 0, 0, ALLOW)]
    for limited in _limited():
        if limited.numbers[column] != NONE:
            lines += _lines_for(limited, column)
    lines += [(IF_EQUAL, 0, 1, CLONE3), (RETURN, 0, 0, UNKNOWN), (RETURN, 0, 0, REFUSE)]
    return b"".join(struct.pack("HBBI", *line) for line in lines)


def _lines_for(limited: _Limited, column: int) -> list[tuple[int, int, int, int]]:
    """Return the instructions for a call restricted by an argument; the next call's follow."""
    decide = [(LOAD, 0, 0, ARGUMENTS_AT + 8 * limited.argument)]
    for value in limited.values:
        decide += [(limited.instruction, 0, 1, value), (RETURN, 0, 0, limited.met)]
    decide.append((RETURN, 0, 0, ALLOW if limited.met == REFUSE else REFUSE))
    return [(IF_EQUAL, 0, len(decide), limited.numbers[column]), *decide]


PR_SET_NO_NEW_PRIVS = 38
MAX_OPEN_FILES = 128
# In addition to the machine's threads when a reader starts. Linux counts all of a user's, and none of root's.
MAX_MORE_THREADS = 1000
# Libraries, fonts and time zones; files below /etc are named individually.
SYSTEM = (
    "/usr", "/lib", "/lib64", "/etc/ld.so.cache", "/etc/localtime", "/etc/mime.types", "/etc/fonts", "/dev/urandom",
)  # fmt: skip


def limit(memory_mb: int, cpu_seconds: int) -> None:
    """Limit memory, CPU time and threads of this process, and prevent it from writing files."""
    memory_bytes = memory_mb * 1024 * 1024
    for what, maximum in (
        (resource.RLIMIT_AS, memory_bytes),
        (resource.RLIMIT_CPU, cpu_seconds),
        (resource.RLIMIT_FSIZE, 0),
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_NOFILE, MAX_OPEN_FILES),
        (resource.RLIMIT_NPROC, _threads_now() + MAX_MORE_THREADS),
    ):
        allowed = resource.getrlimit(what)[1]
        limit = maximum if allowed == resource.RLIM_INFINITY else min(maximum, allowed)
        resource.setrlimit(what, (limit, limit))


def _threads_now() -> int:
    """Return the machine's number of threads; a guess outside of Linux."""
    try:
        return int(Path("/proc/loadavg").read_text().split()[3].partition("/")[2])
    except OSError:
        return MAX_MORE_THREADS


def confine(*files: Path) -> tuple[bool, bool]:
    """Permanently restrict this process to reading these files and its own code.

    Returns whether its system calls are restricted, and whether other files are closed to it: both are on usual Linux.
    """
    if sys.platform != "linux" or ctypes.CDLL(None).prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0:
        return False, False
    closed = read_only([*files, *_code(), *map(Path, SYSTEM)])
    return limit_calls(), closed


def _code() -> Iterator[Path]:
    """Yield the folders of Python, its packages and ours; in a checkout, where people keep files, only the package."""
    yield from (Path(sys.prefix), Path(sys.base_prefix), PACKAGE)
    own = {Path(), Path.cwd(), FILES if not IS_INSTALLED else PACKAGE}
    yield from {Path(entry) for entry in sys.path[1:]} - own


# These system call numbers are the same on every architecture.
CREATE_RULESET, ADD_RULE, RESTRICT_SELF = 444, 445, 446
ASK_FOR_VERSION, PATH_BENEATH = 1, 1
READ_FILE, READ_FOLDER = 1 << 2, 1 << 3
# The number of file rights in each version of the interface; then those for TCP, and what reaches other processes
# without a file: abstract sockets and signals.
FILE_RIGHTS = {1: 13, 2: 14, 3: 15, 4: 15, 5: 16}
TCP_SINCE, TCP = 4, 0b11
SCOPES_SINCE, SCOPES = 6, 0b11


def read_only(paths: Iterable[Path]) -> bool:
    """Allow reading only these files and folders; return whether the kernel supports that.

    The process must have given up new privileges before (``PR_SET_NO_NEW_PRIVS``). Missing paths are skipped.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    version = libc.syscall(CREATE_RULESET, None, ctypes.c_size_t(0), ASK_FOR_VERSION)
    if version < 1:
        return False
    handled = struct.pack(
        "QQQ",
        (1 << FILE_RIGHTS[min(version, max(FILE_RIGHTS))]) - 1,
        TCP if version >= TCP_SINCE else 0,
        SCOPES if version >= SCOPES_SINCE else 0,
    )
    rules = libc.syscall(CREATE_RULESET, handled, ctypes.c_size_t(len(handled)), 0)
    if rules < 0:
        return False
    try:
        for path in paths:
            _allow(libc, rules, path)
        return bool(libc.syscall(RESTRICT_SELF, rules, 0) == 0)
    finally:
        os.close(rules)


def _allow(libc: ctypes.CDLL, rules: int, path: Path) -> None:
    try:
        opened = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        return
    try:
        rights = READ_FILE | READ_FOLDER if path.is_dir() else READ_FILE
        libc.syscall(ADD_RULE, rules, PATH_BENEATH, struct.pack("=Qi", rights, opened), 0)
    finally:
        os.close(opened)


def main(module: str, memory_mb: str, cpu_seconds: str, niceness: str, file: str, *arguments: str) -> int:
    """Run a module under limits and return the exit status; of what fails cleanly, the last line says why."""
    work, out = import_module(module).work, sys.stdout.buffer
    os.nice(int(niceness))
    limit(int(memory_mb), int(cpu_seconds))
    confine(*([Path(file)] if file else []))
    try:
        for piece in work(Path(file) if file else sys.stdin.buffer, *arguments):
            out.write(piece)
            out.flush()
    except ExtractionFailed as error:
        out.write(b"\n" + encode(Failure(str(error), repr(error.__cause__)[:500])))
        return FAILED_CLEANLY
    return 0


if __name__ == "__main__":
    end_with_parent()
    sys.exit(main(*sys.argv[1:]))
