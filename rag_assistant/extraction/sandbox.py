"""Take from a process what reading a document does not need: memory and time without end, files, network, programs.

Linux only; elsewhere only the limits of the operating system are set.
"""

from __future__ import annotations

import ctypes
import errno
import os
import platform
import resource
import struct
import sys

PR_SET_SECCOMP, PR_SET_NO_NEW_PRIVS, FILTER = 22, 38, 2
MAX_OPEN_FILES = 128

# One machine instruction of the kernel's filter language each: what it does, and the numbers for "true" and "false".
LOAD, IF_EQUAL, IF_AT_LEAST, IF_ANY_BIT, RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
CALL_NUMBER_AT, MACHINE_AT, ARGUMENTS_AT = 0, 4, 16
ALLOW, REFUSE = 0x7FFF0000, 0x00050000 | errno.EACCES
FIRST_FOREIGN_CALL = 0x40000000
WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC

# For each machine: its mark, the calls that open a file with the place of the argument that says how, and the calls
# that are refused: those that connect, start programs, stop processes, or make, change, rename and delete files.
MACHINES = {
    "x86_64": (
        0xC000003E,
        {2: 1, 257: 2},
        [41, 42, 49, 50, 59, 62, 76, 82, 83, 84, 85, 86, 87, 88, 90, 91, 92, 93, 94, 101, 132, 133, 165, 188, 189,
         190, 235, 258, 259, 260, 261, 263, 264, 265, 266, 268, 280, 298, 310, 311, 316, 321, 322, 425, 437, 452],
    ),
    "aarch64": (
        0xC00000B7,
        {56: 2},
        [5, 6, 7, 33, 34, 35, 36, 37, 38, 40, 45, 52, 53, 54, 55, 88, 117, 129, 198, 200, 201, 203, 221, 241, 270,
         271, 276, 280, 281, 425, 437, 452],
    ),
}  # fmt: skip


def limit(memory_mb: int, cpu_seconds: int) -> None:
    """Limit memory and CPU time of this process, and let it write nothing to any file."""
    memory_bytes = memory_mb * 1024 * 1024
    for what, maximum in (
        (resource.RLIMIT_AS, memory_bytes),
        (resource.RLIMIT_CPU, cpu_seconds),
        (resource.RLIMIT_FSIZE, 0),
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_NOFILE, MAX_OPEN_FILES),
    ):
        allowed = resource.getrlimit(what)[1]
        limit = maximum if allowed == resource.RLIM_INFINITY else min(maximum, allowed)
        resource.setrlimit(what, (limit, limit))


def confine() -> bool:
    """Take network, programs and every change of a file from this process for good; say whether that was possible."""
    machine = MACHINES.get(platform.machine())
    if sys.platform != "linux" or machine is None:
        return False
    libc = ctypes.CDLL(None, use_errno=True)
    program = _program(*machine)
    held = ctypes.create_string_buffer(program, len(program))
    described = struct.pack("HxxxxxxQ", len(program) // 8, ctypes.addressof(held))
    if libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0:
        return False
    return bool(libc.prctl(PR_SET_SECCOMP, FILTER, ctypes.create_string_buffer(described, len(described)), 0, 0) == 0)


def _program(mark: int, openings: dict[int, int], refused: list[int]) -> bytes:
    """Return the filter that the kernel runs before each system call."""
    lines = [
        (LOAD, 0, 0, MACHINE_AT),
        (IF_EQUAL, 1, 0, mark),
        (RETURN, 0, 0, REFUSE),
        (LOAD, 0, 0, CALL_NUMBER_AT),
        (IF_AT_LEAST, 0, 1, FIRST_FOREIGN_CALL),
        (RETURN, 0, 0, REFUSE),
    ]
    for call in refused:
        lines += [(IF_EQUAL, 0, 1, call), (RETURN, 0, 0, REFUSE)]
    for call, argument in openings.items():
        lines += [
            (IF_EQUAL, 0, 4, call),
            (LOAD, 0, 0, ARGUMENTS_AT + 8 * argument),
            (IF_ANY_BIT, 0, 1, WRITING),
            (RETURN, 0, 0, REFUSE),
            (RETURN, 0, 0, ALLOW),
        ]
    lines.append((RETURN, 0, 0, ALLOW))
    return b"".join(struct.pack("HBBI", *line) for line in lines)
