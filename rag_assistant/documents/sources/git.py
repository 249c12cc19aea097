"""A git repository as a source of documents: its latest state is fetched into a data folder and read there.

Nothing of a repository is executed: hooks aren't fetched, links become text files, submodules are left out. Credentials
are those of this machine's ``git`` and ``ssh``; neither may prompt, nor do they get any of ours.
"""

import hashlib
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

from msgspec.structs import replace

from rag_assistant.documents.intake import SourceFile
from rag_assistant.documents.sources.folder import Folder
from rag_assistant.records.errors import OriginUnavailable
from rag_assistant.runtime.parent import ending_with_us
from rag_assistant.runtime.supervised_process import plain_environment

TIMEOUT_SECONDS = 600.0
# A repository of a few kilobytes can contain a million files: each is checked out, and becomes a document.
MAX_FILES = 5000
BYTES_AT_ONCE = 1 << 16
SAFE = (
    *("-c", "core.hooksPath=/dev/null", "-c", "core.symlinks=false", "-c", "protocol.ext.allow=never"),
    *("-c", "core.fsmonitor=false", "-c", "submodule.recurse=false"),
)
GIT = (*ending_with_us(["git"]), *SAFE)
SILENT = {"GIT_TERMINAL_PROMPT": "0", "LC_ALL": "C"}
DEFAULT = {"GIT_SSH_COMMAND": "ssh -oBatchMode=yes"}
NEEDED = frozenset("SSH_AUTH_SOCK GIT_SSH_COMMAND http_proxy https_proxy HTTPS_PROXY no_proxy NO_PROXY".split())


class GitRepository:
    """The files of a repository's default branch; ``clones`` is the folder for clones."""

    def __init__(self, address: str, clones: Path) -> None:
        self.address = address
        self._url = address.removeprefix("git+")
        self._clone = clones / hashlib.sha256(address.encode()).hexdigest()[:16]

    def files(self) -> Iterator[SourceFile]:
        """Fetch the latest state, and yield its files. Raises OriginUnavailable."""
        if not (self._clone / ".git").is_dir():
            self._clone.parent.mkdir(parents=True, exist_ok=True)
            self._git("init", "--quiet", str(self._clone))
        inside = ("-C", str(self._clone))
        self._git(*inside, "fetch", "--quiet", "--depth", "1", "--no-tags", "--", self._url, "HEAD")
        self._refuse_too_many()
        self._git(*inside, "reset", "--quiet", "--hard", "FETCH_HEAD")
        self._git(*inside, "clean", "--quiet", "-ffdx")
        root, day = self._clone.resolve(), self._git(*inside, "log", "-1", "--format=%cs").strip()
        for file in Folder(self._clone).files():
            origin = f"{self.address}#{Path(file.origin).relative_to(root).as_posix()}"
            yield replace(file, origin=origin, modified=day)

    def holds(self, origin: str) -> bool:
        """Return whether a document's origin is in this repository."""
        return origin.startswith(f"{self.address}#")

    def _refuse_too_many(self) -> None:
        """Refuse more files than the limit. Raises OriginUnavailable."""
        command = [*GIT, "-C", str(self._clone), "ls-tree", "-r", "-z", "--name-only", "FETCH_HEAD"]
        # It isn't read to its end, which may be far.
        with subprocess.Popen(command, stdout=subprocess.PIPE, env=plain_environment() | SILENT) as process:
            assert process.stdout is not None  # noqa: S101 - it was opened above, which the type checker cannot know
            files = 0
            while files <= MAX_FILES and (piece := os.read(process.stdout.fileno(), BYTES_AT_ONCE)):
                files += piece.count(0)
            process.kill()
        if files > MAX_FILES:
            raise OriginUnavailable(f"{self._url} has more than {MAX_FILES:,} files, which is the limit.")

    def _git(self, *words: str) -> str:
        if shutil.which("git") is None:
            raise OriginUnavailable("git is not installed on this machine.")
        needed = {name: value for name, value in os.environ.items() if name in NEEDED}
        try:
            return subprocess.run(
                [*GIT, *words],
                check=True,
                capture_output=True,
                text=True,
                errors="replace",
                stdin=subprocess.DEVNULL,
                timeout=TIMEOUT_SECONDS,
                env=plain_environment() | DEFAULT | needed | SILENT,
            ).stdout
        except subprocess.TimeoutExpired as error:
            raise OriginUnavailable(f"{self._url} takes longer than {TIMEOUT_SECONDS:g} seconds.") from error
        except subprocess.CalledProcessError as error:
            lines = [line for line in error.stderr.splitlines() if line.startswith(("fatal:", "error:"))]
            reason = lines[0].partition(": ")[2] if lines else f"git ended with {error.returncode}"
            raise OriginUnavailable(f"{self._url} could not be fetched: {reason.rstrip('.')}.") from error
