"""Read a file as an upload is read."""

from pathlib import Path

from rag_assistant.extraction.extract import read_document
from rag_assistant.extraction.formats.kinds import media_type_of
from rag_assistant.records.documents import ExtractedText


def read(tmp_path: Path, content: bytes | str, name: str = "file") -> ExtractedText:
    """Read a file as an upload is read: its kind from its first bytes, then all of it."""
    path = tmp_path / "kept"
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return read_document(path, media_type_of(path.read_bytes()[:4096], name))
