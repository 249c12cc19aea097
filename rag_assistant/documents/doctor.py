"""Check that SQL, the uploaded files and the vectors agree, and repair what doesn't.

SQL is the truth: what is missing elsewhere is rebuilt from it, and what exists only elsewhere is deleted.
"""

from collections.abc import Callable, Iterator

from msgspec import Struct

from rag_assistant.documents.library import Library
from rag_assistant.documents.processing import DocumentProcessing
from rag_assistant.documents.uploads import Uploads
from rag_assistant.records.errors import FilesUnavailable
from rag_assistant.storage.documents.checks import LibraryChecks
from rag_assistant.storage.documents.chunks import ChunkStore
from rag_assistant.storage.documents.embeddings import EmbeddingStore

LISTED = 10


class Finding(Struct, frozen=True):
    """An inconsistency, described in a sentence; ``mend`` repairs it, if that is possible."""

    sentence: str
    mend: Callable[[], None] | None = None


class Doctor(Struct, frozen=True):
    """Examines a library. The vector index checks itself at every start of a server."""

    checks: LibraryChecks
    chunks: ChunkStore
    embeddings: EmbeddingStore
    uploads: Uploads
    library: Library
    processing: DocumentProcessing

    def examine(self) -> Iterator[Finding]:
        """Yield the findings, worst first; for a damaged database, whose answers mean nothing, only that."""
        damage = self.checks.database_damage()
        yield from (Finding(f"The database is damaged: {line}. Restore a backup.") for line in damage)
        if damage:
            return
        yield from self._texts()
        yield from self._vectors()
        yield from self._counters()
        yield from self._files()

    def _texts(self) -> Iterator[Finding]:
        cut, unknown = self.checks.badly_cut(), self.checks.without_words()
        if cut:
            yield Finding(f"{_named(cut)}: the chunks do not make up the text.", self._mending(cut))
        if unknown:
            yield Finding(f"{_named(unknown)}: words do not find all of it.", self._mending(unknown))
        stray = self.checks.stray_words()
        if stray:
            yield Finding(f"Entries of keyword search without a chunk: {len(stray)}.", self.checks.drop_stray_words)

    def _vectors(self) -> Iterator[Finding]:
        broken = self.checks.with_broken_vectors()
        if broken:
            yield Finding(f"{_named(broken)}: vectors of the wrong length.", self._remake_broken_vectors)
        serving = self.embeddings.serving()
        lacking = self.checks.lacking_vectors(serving.key) if serving else []
        if lacking:
            yield Finding(f"{_named(lacking)}: ready, but not all of it is embedded.", self.processing.reindex)

    def _counters(self) -> Iterator[Finding]:
        wrong = self.checks.wrong_counts()
        if wrong:
            yield Finding(f"{_named(wrong)}: the number of chunks is wrong.", self.checks.recount)
        for key in self.checks.wrong_versions():
            yield Finding(f"The counters of {key} do not agree with its vectors.", self.checks.recount)

    def _files(self) -> Iterator[Finding]:
        try:
            stored = list(self.uploads.store.stored())
        except FilesUnavailable as error:
            yield Finding(f"The uploaded files cannot be checked: {error}")
            return
        documents = self.library.documents
        there, expected = {one.name for one in stored}, documents.known_files()
        lost = [number for number in documents.in_store() if documents.with_file(number)[1] not in there]
        if lost:
            yield Finding(f"{_named(lost)}: the uploaded file is gone; what was read of it is still here.")
        if strays := [one.name for one in stored if self.uploads.is_stray(one, expected)]:
            address = self.uploads.store.address
            yield Finding(
                f"Files in {address} that belong to no document of this database: {len(strays)}.",
                lambda: self.uploads.drop_all(strays),
            )

    def _mending(self, document_ids: list[int]) -> Callable[[], None] | None:
        """Return a function that reads some documents again; ``None`` if one of their files isn't here."""
        try:
            here = self.uploads.names()
        except FilesUnavailable:
            return None
        ours = set(self.library.documents.in_store())
        if any(one not in ours or self.library.documents.with_file(one)[1] not in here for one in document_ids):
            return None

        def mend() -> None:
            for document_id in document_ids:
                self.chunks.distrust(document_id)
                self.library.read_again(document_id)

        return mend

    def _remake_broken_vectors(self) -> None:
        self.checks.drop_broken_vectors()
        self.processing.reindex()


def _named(document_ids: list[int]) -> str:
    shown = ", ".join(map(str, document_ids[:LISTED]))
    more = f" and {len(document_ids) - LISTED} more" if len(document_ids) > LISTED else ""
    return f"{'Document' if len(document_ids) == 1 else 'Documents'} {shown}{more}"
