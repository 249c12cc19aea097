"""Download a large file over HTTP: resumable, and checked before it gets its name."""

import hashlib
from collections.abc import Callable
from pathlib import Path
from urllib.parse import unquote, urlsplit

import httpx2

from rag_assistant.records.errors import DownloadFailed
from rag_assistant.runtime.public_http import reason_of

SILENCE_SECONDS = 60.0

# Called with the bytes received and the total, ``None`` if the server doesn't say.
OnProgress = Callable[[int, int | None], None]


def name_in(url: str) -> str:
    """Return the file name in a URL. Raises DownloadFailed if there is none."""
    parts = urlsplit(url)
    name = Path(unquote(parts.path)).name
    if parts.scheme not in ("http", "https") or not parts.hostname or not name:
        raise DownloadFailed(f'"{url}" is not the address of a file; it must look like https://host/path/file.gguf.')
    return name


def download(url: str, target: Path, begins_with: bytes, sha256: str | None, on_progress: OnProgress) -> str:
    """Download a file, resuming an earlier attempt, and return its SHA-256.

    Raises DownloadFailed: a partial file is kept if the connection broke, and deleted if it is the wrong file.
    """
    part, tag = target.with_name(f"{target.name}.part"), target.with_name(f"{target.name}.etag")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        _fetch(url, part, tag, on_progress)
        digest = _digest(part, begins_with)
        if digest is None or sha256 not in (None, digest):
            part.unlink()
            tag.unlink()
            wrong = "not a GGUF file" if digest is None else f"another file: its SHA-256 is {digest}, not {sha256}"
            raise DownloadFailed(f"What {url} sends is {wrong}. It was deleted.")
        part.replace(target)
        tag.unlink(missing_ok=True)
    except httpx2.HTTPStatusError as error:
        response = error.response
        raise DownloadFailed(f"{url} answers {response.status_code} {response.reason_phrase}.") from error
    except (OSError, httpx2.HTTPError, httpx2.InvalidURL) as error:
        raise DownloadFailed(f"{url} could not be fetched: {reason_of(error)}. Run it again to resume.") from error
    return digest


def check_file(file: Path, sha256: str | None) -> None:
    """Raise DownloadFailed if an existing file has another hash."""
    if sha256 is not None and (digest := _digest(file, b"")) != sha256:
        raise DownloadFailed(f"{file} is another file: its SHA-256 is {digest}, not {sha256}. Move it away first.")


def _fetch(url: str, part: Path, tag: Path, on_progress: OnProgress) -> None:
    """Download the missing part of a file. Raises OSError or HTTPError if the connection breaks."""
    etag = tag.read_text() if part.exists() and tag.exists() else ""
    have = part.stat().st_size if etag else 0
    # If-Range: the rest of the same file, or the whole of one that has replaced it.
    headers = {"Range": f"bytes={have}-", "If-Range": etag} if have else {}
    headers["Accept-Encoding"] = "identity"
    with httpx2.stream("GET", url, headers=headers, timeout=SILENCE_SECONDS, follow_redirects=True) as response:
        if response.status_code == httpx2.codes.RANGE_NOT_SATISFIABLE and have:
            return  # It is complete.
        response.raise_for_status()
        have = have if response.status_code == httpx2.codes.PARTIAL_CONTENT else 0
        tag.write_text(response.headers.get("ETag", ""))
        length = response.headers.get("Content-Length")
        total = have + int(length) if length else None
        with part.open("ab" if have else "wb") as file:
            try:
                for piece in response.iter_raw():
                    file.write(piece)
                    have += len(piece)
                    on_progress(have, total)
            except httpx2.RemoteProtocolError as error:
                raise ConnectionResetError(f"the connection broke after {have} of {total} bytes") from error


def _digest(file: Path, begins_with: bytes) -> str | None:
    """Return a file's SHA-256, ``None`` if it begins with something else."""
    with file.open("rb") as opened:
        if opened.read(len(begins_with)) != begins_with:
            return None
        opened.seek(0)
        return hashlib.file_digest(opened, "sha256").hexdigest()
