"""Files in an S3 bucket, which every server reaches. obstore is used only here: it finds keys, in the environment or
by the machine's role, signs requests, and lists. httpx2 sends the others, since obstore follows redirects.

Files are read in parts, and sent as they are read, so that memory use doesn't depend on their size.
"""

from __future__ import annotations

import base64
import hashlib
import io
import re
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import IO, TYPE_CHECKING, Literal

import httpx2
import obstore
from obstore.exceptions import BaseError
from obstore.store import S3Store

from rag_assistant.files.store import FILE_NAME, StoredFile
from rag_assistant.records.errors import FileDamaged, FilesUnavailable, StorageFailed
from rag_assistant.runtime.bounded_http import BoundedTransport, deadline

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

PART_BYTES = 8 << 20
# Time for a request, and more for a file that is sent.
REQUEST_TIMEOUT_SECONDS = 30.0
MIN_BYTES_PER_SECOND = 300_000
CONNECT_TIMEOUT_SECONDS = 5.0
RETRIES = 1
# How long a signed address of a file holds: as much as clocks may differ.
SIGNED_FOR_SECONDS = 900.0
MAX_REASON_BYTES = 4096

KEYS = "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"
RIGHTS = "{address} rejected the keys. They need permission to list, read, write and delete there."
REDIRECTED = "{address} leads to another server, which is not asked. Correct s3_endpoint_url or s3_region."
REGION = "The bucket of {address} is in another region. Correct s3_region."
# Messages by S3's own error codes, with what to do.
REFUSALS = {
    "NoSuchBucket": "There is no bucket at {address}. Create it, or correct files_url.",
    "InvalidAccessKeyId": "{address} does not recognise the key in AWS_ACCESS_KEY_ID.",
    "SignatureDoesNotMatch": f"{{address}} rejected the signature. Check {KEYS}, and s3_region.",
    "AccessDenied": RIGHTS,
    "RequestTimeTooSkewed": "This machine's clock and that of {address} differ too much. Set the clock.",
    "PermanentRedirect": REGION,
    "AuthorizationHeaderMalformed": REGION,
    "NotImplemented": "{address} does not support conditional writes (If-None-Match), so files are not safe there.",
}
FULL = ("InsufficientCapacity", "QuotaExceeded", "XMinioStorageFull")
SIZE = re.compile(r"\d{1,15}")
RANGE = re.compile(r"bytes (\d{1,15})-(\d{1,15})/")
CODE = re.compile(r"<Code>(\w+)</Code>")
# Messages for responses without a code, as to HEAD; names and times may contain any digits.
REFUSED = re.compile(r"status code: 40[13]\b")
# Where obstore looks for the machine's role if there are no keys.
METADATA = "169.254.169.254"


class S3Files:
    """The objects with generated names below a prefix of a bucket; see FileStore."""

    is_shared = True

    def __init__(self, url: str, endpoint: str | None, region: str | None, path_style: bool, incoming: Path) -> None:
        bucket, _, prefix = url.removeprefix("s3://").partition("/")
        self.owner = url.rstrip("/")
        self.address = f"{url} at {endpoint}" if endpoint else url
        self.incoming = incoming
        by_host = endpoint is None or not path_style
        if endpoint and by_host:
            endpoint = endpoint.replace("://", f"://{bucket}.", 1)
        self._store = S3Store(
            bucket,
            prefix=prefix.strip("/") or None,
            config={
                "virtual_hosted_style_request": by_host,
                **({"endpoint": endpoint.rstrip("/")} if endpoint else {}),
                **({"region": region} if region else {}),
            },
            client_options={
                "allow_http": (endpoint or "").startswith("http://"),
                "connect_timeout": timedelta(seconds=CONNECT_TIMEOUT_SECONDS),
                "timeout": timedelta(seconds=REQUEST_TIMEOUT_SECONDS),
            },
            retry_config={"max_retries": RETRIES, "retry_timeout": timedelta(seconds=REQUEST_TIMEOUT_SECONDS)},
        )
        timeout = httpx2.Timeout(REQUEST_TIMEOUT_SECONDS, connect=CONNECT_TIMEOUT_SECONDS)
        transport = BoundedTransport(sys.maxsize)
        self._client = httpx2.Client(timeout=timeout, transport=transport, headers={"Connection": "close"})

    def keep(self, path: Path, name: str) -> None:
        """Send a file and delete it here; it is durable once S3 has answered.

        If an earlier attempt's response was lost, its object counts if it is the same.
        """
        with path.open("rb") as file, self._failures_named():
            if not self._send(file, path.stat().st_size, name):
                self.verified(name, hashlib.file_digest(file, "sha256").hexdigest()).close()
        path.unlink()

    def _send(self, file: io.BufferedReader, size: int, name: str) -> bool:
        """Send a file; return False if one of this name exists."""
        md5 = hashlib.file_digest(file, partial(hashlib.md5, usedforsecurity=False)).digest()
        headers = {"If-None-Match": "*", "Content-Length": str(size), "Content-MD5": base64.b64encode(md5).decode()}
        seconds = REQUEST_TIMEOUT_SECONDS + size / MIN_BYTES_PER_SECOND
        for retries in reversed(range(RETRIES + 1)):
            file.seek(0)
            try:
                with self._signed("PUT", name, headers, file, seconds):
                    return True
            except FileExistsError:
                break
            except FilesUnavailable as error:
                if not retries or error.__cause__ is None:  # S3 refused; otherwise the connection broke.
                    raise
        file.seek(0)
        return False

    @contextmanager
    def local(self, name: str, sha256: str, size_bytes: int | None = None) -> Iterator[Path]:
        """Download a file for this context. Raises as ``verified`` does."""
        with self.verified(name, sha256, size_bytes) as file:
            yield Path(file.name)

    def verified(self, name: str, sha256: str, size_bytes: int | None = None) -> IO[bytes]:
        """Download a file, and return it open if it is the one with this hash.

        Raises FileNotFoundError, FileDamaged, FilesUnavailable, and StorageFailed if the local disk is full.
        """
        self.incoming.mkdir(parents=True, exist_ok=True)
        # What the store says of a file's size is not believed if it is known.
        remote, digest = _RemoteFile(self, name, size_bytes) if size_bytes else self.open(name), hashlib.sha256()
        file = tempfile.NamedTemporaryFile(dir=self.incoming, suffix=".part")  # noqa: SIM115 - it is handed out
        try:
            while piece := remote.read(PART_BYTES):
                digest.update(piece)
                try:
                    file.write(piece)
                    file.flush()
                except OSError as error:
                    sentence = f"A file could not be copied to disk ({error.strerror})."
                    raise StorageFailed(sentence) from error
            if sha256 and digest.hexdigest() != sha256:
                raise FileDamaged(name)
        except BaseException:
            file.close()
            raise
        file.seek(0)
        return file

    def open(self, name: str) -> io.BufferedReader:
        """Open a file, which is downloaded as it is read. Raises FileNotFoundError."""
        try:
            with self._signed("HEAD", name) as response:
                size = response.headers.get("Content-Length", "")
        except FileNotFoundError:
            self.check()  # This response doesn't show whether the whole bucket is gone.
            raise
        if not SIZE.fullmatch(size):
            address = self.address
            raise FilesUnavailable(f"{address} does not say how large a file is.")
        return io.BufferedReader(_RemoteFile(self, name, int(size)), PART_BYTES)

    def read(self, name: str, start: int, length: int) -> memoryview:
        """Return some bytes of an existing file. Raises FileDamaged if it is shorter than stated."""
        data = bytearray()
        with self._signed("GET", name, {"Range": f"bytes={start}-{start + length - 1}"}) as response:
            ranges = RANGE.match(response.headers.get("Content-Range", ""))
            if ranges and (int(ranges[1]) != start or int(ranges[2]) >= start + length):
                raise httpx2.RemoteProtocolError("another range")
            # Some servers send all of a file instead.
            position = start if ranges else 0
            for piece in response.iter_raw():
                data += memoryview(piece)[max(0, start - position) :]
                position += len(piece)
                if len(data) > length or (len(data) == length and not ranges):
                    break
        if len(data) < length:
            raise FileDamaged(name)
        return memoryview(data)[:length]

    @contextmanager
    def _signed(
        self,
        method: Literal["GET", "HEAD", "PUT", "DELETE"],
        name: str,
        headers: Mapping[str, str] | None = None,
        content: IO[bytes] | None = None,
        seconds: float | None = None,
    ) -> Iterator[httpx2.Response]:
        """Send a signed request for a file without following redirects; obstore would follow them to any server.

        Raises FileNotFoundError, FileExistsError, FileDamaged if it is shorter than stated, and FilesUnavailable.
        """
        with self._failures_named():
            url = obstore.sign(self._store, method, name, timedelta(seconds=SIGNED_FOR_SECONDS))
            stream = self._client.stream(method, url, headers=headers, content=content)
            with deadline(seconds or REQUEST_TIMEOUT_SECONDS), stream as response:
                if response.is_success:
                    yield response
                    return
                reason = f"status code: {response.status_code} {next(response.iter_raw(MAX_REASON_BYTES), b'')!r}"
        if response.is_redirect and not CODE.search(reason):
            raise FilesUnavailable(REDIRECTED.format(address=self.address))
        if response.status_code == httpx2.codes.RANGE_NOT_SATISFIABLE:
            raise FileDamaged(name)
        if response.status_code == httpx2.codes.PRECONDITION_FAILED:
            raise FileExistsError(name)
        if response.status_code == httpx2.codes.NOT_FOUND and "NoSuchBucket" not in reason:
            raise FileNotFoundError(name)
        raise _failure(self.address, reason)

    def drop(self, name: str) -> None:
        with suppress(FileNotFoundError), self._signed("DELETE", name):
            pass

    def stored(self) -> Iterator[StoredFile]:
        """Yield all objects with generated names, and ignore the rest."""
        with self._failures_named():
            for some in obstore.list(self._store):
                for one in some:
                    if FILE_NAME.fullmatch(one["path"]):
                        yield StoredFile(one["path"], one["size"], one["last_modified"].timestamp())

    def objects(self) -> Iterator[tuple[str, str]]:
        """Yield the keys of all objects, each with a mark that changes with its content."""
        with self._failures_named():
            for some in obstore.list(self._store):
                for one in some:
                    yield one["path"], f"{one['size']} {one['e_tag'] or one['last_modified'].isoformat()}"

    def check(self) -> None:
        """Raise FilesUnavailable, with the reason, if the bucket can't be listed."""
        with self._failures_named():
            next(iter(obstore.list(self._store, chunk_size=1)), None)

    @contextmanager
    def _failures_named(self) -> Iterator[None]:
        """Translate S3's errors, except FileNotFoundError."""
        try:
            yield
        except FileNotFoundError as error:
            if "NoSuchBucket" in str(error):
                raise _failure(self.address, str(error)) from error
            raise
        except httpx2.TimeoutException as error:
            raise FilesUnavailable(f"{self.address} did not respond in time.") from error
        except (BaseError, TimeoutError, httpx2.HTTPError) as error:
            raise _failure(self.address, str(error)) from error


def _failure(address: str, reason: str) -> StorageFailed:
    named = CODE.search(reason)
    code = named[1] if named else ""
    if code in FULL:
        return StorageFailed(f"{address} is full. Nothing that was stored is lost.")
    if code in REFUSALS:
        return FilesUnavailable(REFUSALS[code].format(address=address))
    if code:
        return FilesUnavailable(f"{address} is rejecting requests at the moment ({code}).")
    if METADATA in reason:
        return FilesUnavailable(f"There are no keys for {address}. Set {KEYS}.")
    if REFUSED.search(reason):
        return FilesUnavailable(RIGHTS.format(address=address))
    if "kind: Timeout" in reason:
        return FilesUnavailable(f"{address} did not respond in time.")
    return FilesUnavailable(f"{address} cannot be reached.")


class _RemoteFile(io.RawIOBase):
    """A file in S3, from its beginning to its end."""

    def __init__(self, store: S3Files, name: str, size: int) -> None:
        self._store, self._name, self._size = store, name, size
        self._position = 0

    def readable(self) -> bool:
        return True

    def readall(self) -> bytes:
        return b"".join(iter(lambda: self.read(PART_BYTES) or b"", b""))

    def readinto(self, buffer: WriteableBuffer) -> int:
        target = memoryview(buffer).cast("B")
        length = min(len(target), self._size - self._position)
        if length <= 0:
            return 0
        target[:length] = self._store.read(self._name, self._position, length)
        self._position += length
        return length
