"""A large file from an address: whole, taken up where it broke off, and never another one than was meant."""

import hashlib
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from rag_assistant.records.errors import DownloadFailed
from rag_assistant.runtime.download import download, name_in

CONTENT = b"GGUF" + bytes(range(256)) * 4000
DIGEST = hashlib.sha256(CONTENT).hexdigest()


class Shop(ThreadingHTTPServer):
    """A server of one file, which may break off after some bytes."""

    content = CONTENT
    break_after: int | None = None
    ranges: list[str | None]

    @property
    def url(self) -> str:
        """The address of its file."""
        return f"http://127.0.0.1:{self.server_address[1]}/models/small.gguf"


class Handler(BaseHTTPRequestHandler):
    """Sends the file, or the rest of it to whoever has its beginning."""

    server: Shop

    def do_GET(self) -> None:
        content, asked = self.server.content, self.headers.get("Range")
        self.server.ranges.append(asked)
        if "missing" in self.path:
            self.send_error(404)
            return
        etag = f'"{hashlib.sha256(content).hexdigest()[:8]}"'
        start = int(asked.removeprefix("bytes=").rstrip("-")) if asked and self.headers.get("If-Range") == etag else 0
        if start >= len(content):
            self.send_error(416)
            return
        self.send_response(206 if start else 200)
        self.send_header("ETag", etag)
        self.send_header("Content-Length", str(len(content) - start))
        self.end_headers()
        self.wfile.write(content[start : self.server.break_after])

    def log_message(self, *_: object) -> None:
        """Nothing is logged."""


@pytest.fixture
def shop() -> Iterator[Shop]:
    server = Shop(("127.0.0.1", 0), Handler)
    server.ranges = []
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
    yield server
    server.shutdown()
    server.server_close()


def fetch(shop: Shop, target: Path, sha256: str | None = None) -> list[tuple[int, int | None]]:
    """Fetch the file and return what was told on the way."""
    told: list[tuple[int, int | None]] = []
    assert (
        download(shop.url, target, b"GGUF", sha256, lambda *figures: told.append(figures))
        == hashlib.sha256(shop.content).hexdigest()
    )
    return told


def test_a_file_comes_whole_with_its_progress(shop: Shop, tmp_path: Path) -> None:
    target = tmp_path / "models" / "small.gguf"
    assert fetch(shop, target, DIGEST)[-1] == (len(CONTENT), len(CONTENT))
    assert target.read_bytes() == CONTENT
    assert [path.name for path in target.parent.iterdir()] == ["small.gguf"]


def test_what_broke_off_is_gone_on_with(shop: Shop, tmp_path: Path) -> None:
    target = tmp_path / "small.gguf"
    shop.break_after = 500_000
    with pytest.raises(DownloadFailed, match="Run it again to resume"):
        fetch(shop, target)
    assert not target.exists()
    shop.break_after = None
    fetch(shop, target, DIGEST)
    assert shop.ranges == [None, "bytes=500000-"]
    assert target.read_bytes() == CONTENT


def test_why_nothing_came_is_said_in_words(tmp_path: Path) -> None:
    with pytest.raises(DownloadFailed) as failed:
        download("http://127.0.0.1:1/small.gguf", tmp_path / "small.gguf", b"GGUF", None, lambda *_: None)
    assert str(failed.value) == (
        "http://127.0.0.1:1/small.gguf could not be fetched: Connection refused. Run it again to resume."
    )


def test_another_file_in_its_place_is_fetched_from_its_beginning(shop: Shop, tmp_path: Path) -> None:
    target = tmp_path / "small.gguf"
    shop.break_after = 500_000
    with pytest.raises(DownloadFailed):
        fetch(shop, target)
    shop.break_after, shop.content = None, b"GGUF another"
    fetch(shop, target)
    assert target.read_bytes() == b"GGUF another"


@pytest.mark.parametrize(
    ("content", "sha256", "problem"),
    [(b"<html>", None, "not a GGUF file"), (CONTENT, "0" * 64, f"its SHA-256 is {DIGEST}, not 000")],
)
def test_what_is_not_the_right_file_is_deleted(
    shop: Shop, tmp_path: Path, content: bytes, sha256: str | None, problem: str
) -> None:
    shop.content = content
    with pytest.raises(DownloadFailed, match=problem):
        fetch(shop, tmp_path / "small.gguf", sha256)
    assert list(tmp_path.iterdir()) == []


def test_an_address_without_a_file_is_named(shop: Shop, tmp_path: Path) -> None:
    with pytest.raises(DownloadFailed, match="answers 404"):
        download(shop.url + "/missing", tmp_path / "x", b"", None, lambda *_: None)
    for url in ("ftp://host/x.gguf", "file:///etc/passwd", "https://host/", "small.gguf"):
        with pytest.raises(DownloadFailed, match="is not the address of a file"):
            name_in(url)
    assert name_in("https://host/a/b%20c.gguf?download=true") == "b c.gguf"
