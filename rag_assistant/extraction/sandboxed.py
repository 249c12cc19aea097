"""Run a module of ours on a file in this process, which restricts itself first; sandbox_process.py starts it.

``python -m rag_assistant.extraction.sandboxed MODULE MEMORY_MB CPU_SECONDS NICENESS FILE ARGUMENT ...`` prints what the
module's ``work`` yields. Without a FILE, that reads the input of the process.
"""

import os
import sys
from importlib import import_module
from pathlib import Path

from msgspec.json import encode

from rag_assistant.extraction.sandbox import confine, limit
from rag_assistant.extraction.sandbox_process import FAILED_CLEANLY, Failure
from rag_assistant.records.errors import ExtractionFailed
from rag_assistant.runtime.parent import end_with_parent


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
