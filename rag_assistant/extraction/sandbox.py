"""Restrict a process to what reading a document needs: limited memory and time, no files, network or programs.

Linux only; elsewhere only resource limits are set.
"""

import ctypes
import os
import resource
import struct
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

from rag_assistant.extraction.seccomp import limit_calls
from rag_assistant.settings.package_files import FILES, IS_INSTALLED, PACKAGE

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
