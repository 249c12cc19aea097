"""Room beside SQLite's file that is kept for signing in and deleting once the disk is full."""

import errno
import logging
import os
import shutil
from pathlib import Path

from rag_assistant.records.errors import StorageFailed

log = logging.getLogger(__name__)

# On a small disk, a share of it.
MAX_BYTES, SHARE = 16_000_000, 20
# With less, a small change may still fit into what SQLite has allocated, but no answer would.
MIN_FREE_BYTES = 1_000_000
FULL = "The database could not do this: the disk is full. Nothing that was stored is lost."
GIVEN_UP = (
    "The disk is full. The last %.1f MB were kept for signing in and deleting; questions and uploads are refused until "
    "there is room. Delete documents or empty the trash, or free some space elsewhere."
)


class Reserve:
    """A file that only takes room. Once it is given up, what adds questions or documents is refused (``check``)."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._is_kept = False

    def keep(self) -> bool:
        """Take the room, if that leaves some more; return False if the disk is full."""
        disk = shutil.disk_usage(self._file.parent)
        size = min(MAX_BYTES, disk.total // SHARE)
        try:
            if disk.free < MIN_FREE_BYTES:
                self.give_up()
            elif not self._file.exists():
                with self._file.open("wb") as file:
                    os.posix_fallocate(file.fileno(), 0, 2 * (size + MIN_FREE_BYTES))
                    file.truncate(size)
            self._is_kept = True
        except OSError as error:
            self._file.unlink(missing_ok=True)
            self._is_kept = self._is_kept or error.errno in (errno.ENOSPC, errno.EDQUOT)
        return not self._is_kept or self._file.exists()

    def give_up(self) -> None:
        if self._file.exists():
            log.error(GIVEN_UP, self._file.stat().st_size / 1_000_000)
            self._file.unlink(missing_ok=True)

    def check(self) -> None:
        """Raise StorageFailed while the room is given up; where none is kept, the disk itself refuses."""
        if self._is_kept and not self.keep():
            raise StorageFailed(FULL)
