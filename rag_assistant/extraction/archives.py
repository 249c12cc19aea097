"""Unpack a ZIP archive in a sandboxed process: within limits, and without using a name in it as a path.

For each file in it, the process prints a line of JSON, followed by the content.
"""

import io
import stat
import threading
import zipfile
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO

from msgspec import Struct
from msgspec.json import decode, encode

from rag_assistant.extraction.formats.packages import BROKEN
from rag_assistant.extraction.sandbox_process import Limits, confined
from rag_assistant.records.errors import ExtractionFailed, UnsupportedDocument

MAX_FILES, MAX_FOLDERS, MAX_BYTES = 1_000, 20, 1_000_000_000
# Text shrinks to a tenth, what is made to fill disks to a thousandth.
MAX_RATIO, ANY_RATIO_BYTES = 200, 10_000_000
MAX_MEMORY_MB = 2048
ZIP_MARKS = (b"PK\x03\x04", b"PK\x05\x06")
# ZIP archives that are documents: OOXML, OpenDocument, EPUB, and Apple's.
DOCUMENT_PARTS = {"_rels/.rels", "mimetype", "META-INF/container.xml", "Index/Document.iwa"}
# Names that aren't flagged as UTF-8 are in the encoding of the machine on which the archive was made.
UTF8_FLAG, LOCKED_FLAG = 0x800, 1
NAME_ENCODINGS = ("cp437", "cp850", "cp866", "cp932", "gb18030", "cp949")

_unpacking = threading.Lock()


class Member(Struct, frozen=True):
    """A file in an archive, with its path in it, and its size or why it is refused; a document has no path."""

    path: str
    size: int = 0
    refused: str | None = None


def unpacked(
    file: IO[bytes], max_file_mb: int, timeout_seconds: float, folder: Path
) -> Iterator[tuple[Member, IO[bytes]]]:
    """Yield the files in an archive, each with its content; a copy of all is in ``folder`` meanwhile.

    An archive that is a document is its only file. Raises UnsupportedDocument if none can be unpacked.
    """
    limits = Limits(MAX_MEMORY_MB, timeout_seconds, 2 * MAX_BYTES)
    with TemporaryFile(dir=folder) as output:
        try:
            with _unpacking:  # For the sake of the disk, one at a time.
                output.writelines(confined(__name__, file, [str(max_file_mb)], limits))
        except ExtractionFailed as error:
            raise UnsupportedDocument(str(error)) from error
        output.seek(0)
        while line := output.readline():
            member = decode(line, type=Member)
            yield member, io.BytesIO(output.read(member.size))


class _Unpacking:
    """Unpacks an archive, and those in it, up to a number of files and bytes."""

    def __init__(self, max_file_mb: int) -> None:
        self._max_mb, self._files_left, self._bytes_left = max_file_mb, MAX_FILES, MAX_BYTES

    def files(self, archive: zipfile.ZipFile, folder: str = "") -> Iterator[tuple[Member, bytes]]:
        """Yield the files. Raises ExtractionFailed for none, too many, and a password on each."""
        named = _named(archive)
        self._files_left -= len(named)
        if not named:
            raise ExtractionFailed("The archive contains no files.")
        if self._files_left < 0:
            raise ExtractionFailed(f"The archive contains more than {MAX_FILES} files. Split it.")
        if all(info.flag_bits & LOCKED_FLAG for _, info in named):
            raise ExtractionFailed("The archive has a password. Unpack it and add its files.")
        for name, info in named:
            path = f"{folder}{name}"
            try:
                content = self._content(archive, info, path)
                inner = _archive(io.BytesIO(content)) if content.startswith(ZIP_MARKS) else None
                if inner is None:
                    yield Member(path, len(content)), content
                elif folder:
                    raise ExtractionFailed("It is an archive in an archive in this one. Unpack it and add its files.")
                else:
                    yield from self.files(inner, f"{path}/")
            except ExtractionFailed as error:
                yield Member(path, refused=str(error)), b""

    def _content(self, archive: zipfile.ZipFile, info: zipfile.ZipInfo, path: str) -> bytes:
        """Return a file's content, which is at most of its declared size. Raises ExtractionFailed."""
        max_mb = self._max_mb
        if stat.S_ISLNK(info.external_attr >> 16):
            raise ExtractionFailed("It is a link.")
        if info.flag_bits & LOCKED_FLAG:
            raise ExtractionFailed("It has a password. Unpack it and add its files.")
        if path.count("/") > MAX_FOLDERS:
            raise ExtractionFailed(f"It is in more than {MAX_FOLDERS} folders.")
        if info.file_size > max_mb * 1_000_000:
            raise ExtractionFailed(f"The file is larger than {max_mb} MB, which is the limit.")
        if info.file_size > max(ANY_RATIO_BYTES, MAX_RATIO * info.compress_size):
            raise ExtractionFailed(f"It is more than {MAX_RATIO} times as large once unpacked.")
        if info.file_size > self._bytes_left:
            raise ExtractionFailed("The archive is larger than 1,000 MB once unpacked. Split it.")
        self._bytes_left -= info.file_size
        try:
            return archive.read(info)
        except (*BROKEN, RuntimeError, MemoryError) as error:
            raise ExtractionFailed("It is damaged and cannot be unpacked.") from error


def _archive(file: IO[bytes]) -> zipfile.ZipFile | None:
    """Return an opened archive, ``None`` for a document. Raises ExtractionFailed if it is damaged."""
    try:
        archive = zipfile.ZipFile(file)
    except BROKEN as error:
        raise ExtractionFailed("It is damaged, cut off or not a ZIP archive.") from error
    return archive if DOCUMENT_PARTS.isdisjoint(archive.namelist()) else None


def _named(archive: zipfile.ZipFile) -> list[tuple[str, zipfile.ZipInfo]]:
    """Return each file that isn't hidden with its path, without drives and steps up."""
    infos = [info for info in archive.infolist() if not info.is_dir()]
    # zipfile decodes names that aren't flagged as UTF-8 as cp437, in which every byte is a character.
    untold = {info: info.orig_filename.encode("cp437") for info in infos if not info.flag_bits & UTF8_FLAG}
    names, encoding, named = b"\n".join(untold.values()), "utf-8", []
    try:
        names.decode()
    except UnicodeDecodeError:
        import chardet

        likely = chardet.detect(names, include_encodings=NAME_ENCODINGS, compat_names=False)
        encoding = likely["encoding"] or "cp437"
    for info in infos:
        name = untold[info].decode(encoding, "replace") if info in untold else info.filename
        parts = [part for part in name.replace("\\", "/").split("/") if part.strip(". ") and not part.endswith(":")]
        if not any(part.startswith(".") or part == "__MACOSX" for part in parts):
            named.append(("/".join(parts) or "unnamed", info))
    return named


def work(file: IO[bytes], max_file_mb: str) -> Iterator[bytes]:
    """Yield the files in an archive. Raises ExtractionFailed if it can't be unpacked."""
    archive = _archive(file)
    file.seek(0)
    whole = ((Member("", len(content)), content) for content in iter(file.read, b""))
    for member, content in whole if archive is None else _Unpacking(int(max_file_mb)).files(archive):
        yield encode(member) + b"\n" + content
