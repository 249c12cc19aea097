"""Scan the sources of documents regularly, and update, move and delete documents accordingly.

If several processes work on one database, the one that claims a source scans it.
"""

import logging
import threading
from collections import defaultdict
from collections.abc import Callable, Sequence

from msgspec import Struct

from rag_assistant.documents.intake import Intake, SourceFile
from rag_assistant.documents.library import Library
from rag_assistant.documents.sources.folder import Bucket, Folder
from rag_assistant.documents.sources.git import GitRepository
from rag_assistant.records import SourceState
from rag_assistant.records.errors import AssistantError, FilesUnavailable, OriginUnavailable, StorageFailed
from rag_assistant.storage.documents.sources import SourceStore

log = logging.getLogger(__name__)

MAX_PROBLEMS_NAMED = 5
MAX_POLL_SECONDS = 5.0


# Each has its address as written in the settings, yields its files, and knows which documents came from it.
Source = Folder | Bucket | GitRepository


class _Seen(Struct, frozen=True):
    """What was seen of a file: its mark, and its content or why it was refused."""

    mark: str
    sha256: str = ""
    refusal: str = ""


class Sources:
    """Scans sources in a thread of its own, each once in some ``seconds`` unless it ``rests``."""

    def __init__(
        self, sources: Sequence[Source], library: Library, store: SourceStore, seconds: float, rests: Callable[[], bool]
    ) -> None:
        self._sources = sources
        self._library = library
        self._documents = library.documents
        self._store = store
        self._interval_seconds, self._rests = seconds, rests
        self._seen: dict[str, dict[str, _Seen]] = defaultdict(dict)
        self._closing = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Start, if there are any sources."""
        self._store.keep_only([source.address for source in self._sources])
        if self._sources:
            self._thread = threading.Thread(target=self._watch, name="sources", daemon=True)
            self._thread.start()

    def close(self) -> None:
        """Stop after the current file."""
        self._closing.set()
        if self._thread is not None:
            self._thread.join()

    def states(self) -> list[SourceState]:
        """Return the last result of each source."""
        stored = {one.address: one for one in self._store.all()}
        new = (SourceState(one.address, None, 0, 0, None) for one in self._sources)
        return [stored.get(one.address, one) for one in new]

    def _watch(self) -> None:
        poll_seconds = min(self._interval_seconds, MAX_POLL_SECONDS)
        while not self._closing.is_set():
            for source in () if self._rests() else self._sources:
                try:
                    if self._store.claim(source.address, self._interval_seconds):
                        self.look_through(source)
                except StorageFailed as error:
                    log.warning("The source %s waits: %s", source.address, error)
                except Exception:
                    log.exception("The source %s could not be scanned", source.address)
            self._closing.wait(poll_seconds)

    def look_through(self, source: Source) -> None:
        """Update the library to the state of a source, and record the result."""
        try:
            files = {file.origin: file for file in source.files()}
            self._refuse_sudden_void(source, files)
        except OriginUnavailable as error:
            log.warning("The source %s: %s", source.address, error)
            self._store.note(source.address, problem=str(error))
            return
        refused = self._take_in_all(source, files)
        if self._closing.is_set():
            self._store.release(source.address)
            return
        for document in Intake(self._library).gone(source.holds, files.__contains__):
            log.info("Deleting document %s, since %s is gone.", document.id, document.origin)
            self._library.remove(document.id)
        named = [f"{name}: {sentence}" for name, sentence in refused[:MAX_PROBLEMS_NAMED]]
        self._store.note(source.address, files=len(files), refused=len(refused), problem=" ".join(named) or None)

    def _refuse_sudden_void(self, source: Source, files: dict[str, SourceFile]) -> None:
        """Raise if a source seems to have become empty: an unmounted disk looks the same."""
        held = 0 if files else len([origin for origin in self._documents.by_origin() if source.holds(origin)])
        if held:
            raise OriginUnavailable(
                f"It is empty now. Its documents ({held} in all) were kept; delete them if you no longer need them."
            )

    def _take_in_all(self, source: Source, files: dict[str, SourceFile]) -> list[tuple[str, str]]:
        """Import new and changed files, the only ones that are opened; return the refused ones' names and reasons."""
        intake, contents = Intake(self._library), self._documents.ids_by_sha256()
        seen, refused = self._seen[source.address], []
        for origin in seen.keys() - files.keys():
            del seen[origin]
        for origin, file in files.items():
            if self._closing.is_set():
                break
            last = seen.get(origin)
            if (
                last is None
                or last.mark != file.mark
                or not (last.refusal or origin in intake.by_origin or last.sha256 in contents)
            ):
                last = self._take_in(intake, source, files, file)
                seen[origin] = last
            if last.refusal:
                refused.append((file.name, last.refusal))
        return refused

    def _take_in(self, intake: Intake, source: Source, files: dict[str, SourceFile], file: SourceFile) -> _Seen:
        def is_there(origin: str) -> bool:
            return origin in files or not source.holds(origin)

        try:
            document, _ = intake.take_in(file, is_there, retry=False)
        except (FilesUnavailable, StorageFailed, OSError) as error:
            return _Seen("", refusal=str(error))  # It is tried again the next time.
        except AssistantError as error:
            return _Seen(file.mark, refusal=str(error))
        return _Seen(file.mark, document.sha256)
