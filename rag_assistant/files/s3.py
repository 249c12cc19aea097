"""Files in an S3 bucket, which every server reaches. botocore is used only here: it finds keys, in the environment or
by the machine's role, and signs addresses. httpx2 sends the requests, bounded, and follows no redirects.

Files are read in parts, and sent as they are read, so that memory use doesn't depend on their size.
"""

from __future__ import annotations

import base64
import hashlib
import io
import os
import re
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import IO, TYPE_CHECKING
from urllib.parse import unquote_plus
from xml.etree import ElementTree

import botocore.session
import httpx2
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError, NoCredentialsError

from rag_assistant.files.store import FILE_NAME, StoredFile
from rag_assistant.records.errors import FileDamaged, FilesUnavailable, SettingsError, StorageFailed
from rag_assistant.runtime.bounded_http import INVALID, BoundedTransport, deadline

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

PART_BYTES = 8 << 20
# Time for a request, and more for a file that is sent.
REQUEST_TIMEOUT_SECONDS = 30.0
MIN_BYTES_PER_SECOND = 300_000
CONNECT_TIMEOUT_SECONDS = 5.0
RETRIES = 1
# How long a signed address of a file holds: as much as clocks may differ.
SIGNED_FOR_SECONDS = 900
MAX_REASON_BYTES = 4096
# A list comes in pages of 1,000 keys, each of up to 1,024 bytes, which may take three times as many in an address.
MAX_PAGE_BYTES = 4 << 20
MAX_PAGES = 10_000
LIST: dict[str, str | int] = {"EncodingType": "url"}

KEYS = "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"
RIGHTS = "{address} rejected the keys. They need permission to list, read, write and delete there."
REDIRECTED = "{address} leads to another server, which is not asked. Correct s3_endpoint_url or s3_region."
NO_KEYS = f"There are no keys for {{address}}. Set {KEYS}."
REGION = "The bucket of {address} is in another region. Correct s3_region."
# Messages by S3's own error codes, with what to do.
REFUSALS = {
    "NoSuchBucket": "There is no bucket at {address}. Create it, or correct files_url.",
    "InvalidAccessKeyId": "{address} does not recognise the key in AWS_ACCESS_KEY_ID.",
    "SignatureDoesNotMatch": f"{{address}} rejected the signature. Check {KEYS}, and s3_region.",
    "AccessDenied": RIGHTS,
    "EntityTooLarge": "{address} does not take a file of this size; Amazon's limit is 5 GB.",
    "RequestTimeTooSkewed": "This machine's clock and that of {address} differ too much. Set the clock.",
    "PermanentRedirect": REGION,
    "AuthorizationHeaderMalformed": REGION,
    "AuthorizationQueryParametersError": REGION,
    "NotImplemented": "{address} does not support conditional writes (If-None-Match), so files are not safe there.",
}
FULL = ("InsufficientCapacity", "QuotaExceeded", "XMinioStorageFull")
SIZE = re.compile(r"\d{1,15}")
RANGE = re.compile(r"bytes (\d{1,15})-(\d{1,15})/")
CODE = re.compile(rb"<Code>(\w+)</Code>")
# Other responses to requests for a file.
MEANINGS = {404: FileNotFoundError, 412: FileExistsError, 416: FileDamaged}


class S3Files:
    """The objects with generated names below a prefix of a bucket; see FileStore."""

    is_shared = True

    def __init__(self, url: str, endpoint: str | None, region: str | None, path_style: bool, incoming: Path) -> None:
        bucket, _, prefix = url.removeprefix("s3://").partition("/")
        self.owner = url.rstrip("/")
        self.address = f"{url} at {endpoint}" if endpoint else url
        self.incoming = incoming
        self._bucket = bucket
        self._prefix = "".join(f"{part}/" for part in prefix.split("/") if part)
        style = {"addressing_style": "path" if endpoint and path_style else "virtual"}
        config = Config(signature_version="s3v4", s3=style, request_checksum_calculation="when_required")
        try:
            self._signer = botocore.session.get_session().create_client(
                "s3", region or os.environ.get("AWS_REGION"), endpoint_url=endpoint, config=config
            )
        except (BotoCoreError, ValueError) as error:
            raise SettingsError(f"{self.address} cannot be used: {error}") from error
        timeout = httpx2.Timeout(REQUEST_TIMEOUT_SECONDS, connect=CONNECT_TIMEOUT_SECONDS)
        # On a kept connection that the server has closed, a file would be sent again from where it was read to.
        close = {"Connection": "close"}
        self._client = httpx2.Client(timeout=timeout, transport=BoundedTransport(sys.maxsize), headers=close)

    def keep(self, path: Path, name: str) -> None:
        """Send a file and delete it here; it is durable once S3 has answered.

        If an earlier attempt's response was lost, its object counts if it is the same.
        """
        with path.open("rb") as file:
            if not self._send(file, path.stat().st_size, name):
                self.verified(name, hashlib.file_digest(file, "sha256").hexdigest()).close()
        path.unlink()

    def _send(self, file: io.BufferedReader, size: int, name: str) -> bool:
        """Send a file, then delete it here. If the response was lost, an object that is the same counts as stored."""
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

        Raises FileNotFoundError, FileDamaged, FilesUnavailable, also if the store says that it has another size, and
        StorageFailed if the local disk is full.
        """
        # What the store says of a file's size is not believed if it is known.
        remote, digest = _RemoteFile(self, name, size_bytes) if size_bytes else self.open(name), hashlib.sha256()
        self.incoming.mkdir(parents=True, exist_ok=True)
        file = tempfile.NamedTemporaryFile(dir=self.incoming, suffix=".part")  # noqa: SIM115 - it is handed out
        try:
            while piece := remote.read(PART_BYTES):
                digest.update(piece)
                try:
                    file.write(piece)
                    file.flush()
                except OSError as error:
                    raise StorageFailed(f"A file could not be copied to disk ({error.strerror}).") from error
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
            raise FilesUnavailable(f"{self.address} does not say how large a file is.")
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
        method: str,
        name: str = "",
        headers: Mapping[str, str] | None = None,
        content: IO[bytes] | None = None,
        seconds: float | None = None,
        query: Mapping[str, str | int] = LIST,
    ) -> Iterator[httpx2.Response]:
        """Send a signed request for a file, or for a page of the list, which has no name.

        Raises FileNotFoundError, FileExistsError, FileDamaged if it is shorter than stated, and FilesUnavailable.
        """
        operation = f"{method.lower()}_object" if name else "list_objects_v2"
        params = {"Key": self._prefix + name} if name else {"Prefix": self._prefix, **query}
        try:
            url = self._signer.generate_presigned_url(operation, {"Bucket": self._bucket, **params}, SIGNED_FOR_SECONDS)
            stream = self._client.stream(method, url, headers=headers, content=content)
            with deadline(seconds or REQUEST_TIMEOUT_SECONDS), stream as response:
                if response.is_success:
                    yield response
                    return
                named = CODE.search(next(response.iter_raw(MAX_REASON_BYTES), b""))
        except (BotoCoreError, ClientError) as error:
            reason = NO_KEYS if isinstance(error, NoCredentialsError) else f"{{address}} cannot be used: {error}"
            raise FilesUnavailable(reason.format(address=self.address)) from error
        except httpx2.HTTPError as error:
            problem = "did not respond in time" if isinstance(error, httpx2.TimeoutException) else "cannot be reached"
            raise FilesUnavailable(f"{self.address} {problem}.") from error
        code = named[1].decode() if named else ""
        if name and response.status_code in MEANINGS and code not in REFUSALS:
            raise MEANINGS[response.status_code](name)
        raise _refusal(self.address, code, response.status_code)

    def drop(self, name: str) -> None:
        """Delete a file, if it exists."""
        with suppress(FileNotFoundError), self._signed("DELETE", name):
            pass

    def stored(self) -> Iterator[StoredFile]:
        """Yield all objects with generated names, and ignore the rest."""
        return (file for file, _ in self.objects() if FILE_NAME.fullmatch(file.name))

    def check(self) -> None:
        """Raise FilesUnavailable, with the reason, if the bucket can't be listed."""
        self._page(LIST | {"MaxKeys": 1})

    def objects(self) -> Iterator[tuple[StoredFile, str]]:
        """Yield all below the prefix, without those that stand for folders: each with what changes with its content."""
        tokens: set[str | None] = {""}
        objects, token = self._page()
        while True:
            yield from objects
            if token is None:
                return
            if token in tokens or len(tokens) == MAX_PAGES:
                raise FilesUnavailable(f"{self.address} does not end its list of files.")
            tokens.add(token)
            objects, token = self._page(LIST | {"ContinuationToken": token})

    def _page(self, query: Mapping[str, str | int] = LIST) -> tuple[list[tuple[StoredFile, str]], str | None]:
        """Return a page of the list, and the token of the next one."""
        with self._signed("GET", query=query) as response:
            content = next(response.iter_raw(MAX_PAGE_BYTES), b"")
        try:
            page = ElementTree.fromstring(content, ElementTree.XMLParser(target=_PlainXml()))  # noqa: S314 - bounded
            decoded = unquote_plus if page.findtext("{*}EncodingType") == "url" else str
            objects = []
            for one in page.iterfind("{*}Contents"):
                facts = {element.tag.rpartition("}")[2]: element.text or "" for element in one}
                key, modified = decoded(facts["Key"]), datetime.fromisoformat(facts["LastModified"])
                if not SIZE.fullmatch(facts["Size"]):
                    raise ValueError(facts["Size"])
                if key.startswith(self._prefix) and not key.endswith("/"):
                    file = StoredFile(key.removeprefix(self._prefix), int(facts["Size"]), modified.timestamp())
                    objects.append((file, f"{facts['Size']} {facts.get('ETag') or modified.isoformat()}"))
        except (ElementTree.ParseError, *INVALID) as error:
            raise FilesUnavailable(f"{self.address} does not list its files as S3 does.") from error
        is_last = page.findtext("{*}IsTruncated") != "true"
        return objects, None if is_last else page.findtext("{*}NextContinuationToken", "")


class _PlainXml(ElementTree.TreeBuilder):
    def doctype(self, *_: object) -> None:
        raise ValueError("a document type")


def _refusal(address: str, code: str, status: int) -> StorageFailed:
    if code in FULL:
        return StorageFailed(f"{address} is full. Nothing that was stored is lost.")
    if code in REFUSALS:
        return FilesUnavailable(REFUSALS[code].format(address=address))
    if httpx2.codes.is_redirect(status) and not code:
        return FilesUnavailable(REDIRECTED.format(address=address))
    if code:
        return FilesUnavailable(f"{address} is rejecting requests at the moment ({code}).")
    if status in (httpx2.codes.UNAUTHORIZED, httpx2.codes.FORBIDDEN):
        return FilesUnavailable(RIGHTS.format(address=address))
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
