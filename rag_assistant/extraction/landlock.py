"""Let a process read some files and folders and nothing else, for good (landlock(7), Linux 5.13 and later)."""

from __future__ import annotations

import ctypes
import os
import struct
from collections.abc import Iterable
from pathlib import Path

# The numbers of these calls are the same on every machine.
CREATE_RULESET, ADD_RULE, RESTRICT_SELF = 444, 445, 446
ASK_FOR_VERSION, PATH_BENEATH = 1, 1
READ_FILE, READ_FOLDER = 1 << 2, 1 << 3
# How many rights to files each version of the interface knows; then those to TCP, and what crosses to other processes
# without a file: abstract sockets and signals.
FILE_RIGHTS = {1: 13, 2: 14, 3: 15, 4: 15, 5: 16}
TCP_SINCE, TCP = 4, 0b11
SCOPES_SINCE, SCOPES = 6, 0b11


def read_only(paths: Iterable[Path]) -> bool:
    """Allow reading these files and what lies below these folders; return whether the kernel can do that.

    The process must have given up new privileges before (``PR_SET_NO_NEW_PRIVS``). What is not there is passed over.
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
