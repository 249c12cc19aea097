"""Web pages as documents: added by their address, and fetched again on request."""

import codecs
import io
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import IO
from urllib.parse import unquote, urlunsplit

from rag_assistant.documents.library import Library
from rag_assistant.records import Document
from rag_assistant.records.errors import AddressRefused, NoWebPage, TooManyFetches, UnsupportedDocument
from rag_assistant.runtime.public_http import Fetched, PublicHttp, checked_address
from rag_assistant.settings.schema import Settings

# HTTP and HTTPS only: no other service is contacted.
PORTS = (80, 443)
MAX_FETCHES = 4
# What is worth requesting; the first bytes decide what it really is.
READABLE = ("text/", "application/", "image/png", "image/jpeg", "image/tiff", "image/webp")
# Pages with these types hold no readable text.
NOT_READABLE = ("text/css", "text/javascript", "application/javascript", "application/wasm")
ACCEPT = "text/html, application/xhtml+xml, text/plain, application/pdf, */*;q=0.5"


class WebPages:
    """Adds pages by their address, if that is switched on."""

    def __init__(self, http: PublicHttp, settings: Callable[[], Settings]) -> None:
        self._http = http
        self._settings = settings
        self._places = threading.BoundedSemaphore(MAX_FETCHES)

    def add(
        self, library: Library, url: str, tags: Sequence[str] = (), library_id: int | None = None
    ) -> tuple[Document, bool]:
        """Fetch a page for a person's library and queue it; return its document, and False if its content existed.

        A known page is fetched again. Raises AddressRefused, PageNotFetched, TooManyFetches, and what
        ``Library.accept`` raises.
        """
        url = self._address_of(url.strip())
        earlier = library.documents.of_origin(url)
        with self._fetched(url) as (content, name):
            if earlier is not None and library_id in (None, earlier.library_id):
                return library.accept(content, name, replaces=earlier.id, tags=tags)
            return library.accept(content, name, origin=url, tags=tags, library_id=library_id)

    def fetch_again(self, library: Library, document_id: int) -> tuple[Document, bool]:
        """Fetch a page again; if it has changed, the new version replaces it once it is ready.

        Return the document, and False if nothing has changed. Raises DocumentNotFound, NoWebPage, and what ``add``
        raises.
        """
        document = library.documents.get(document_id)
        library.documents.refuse_read_only([document_id])
        if not document.is_web_page:
            raise NoWebPage(document_id)
        with self._fetched(self._address_of(document.origin or "")) as (content, name):
            return library.accept(content, name, replaces=document_id)

    def _address_of(self, url: str) -> str:
        """Return an address as stored. Raises AddressRefused."""
        if not self._settings().web_pages:
            raise AddressRefused(
                'Adding web pages is switched off. To allow it, set "web_pages" to true on the server.'
            )
        return urlunsplit(checked_address(url, PORTS))

    @contextmanager
    def _fetched(self, url: str) -> Iterator[tuple[IO[bytes], str]]:
        """Give the content of a page, and its name. Raises PageNotFetched, TooManyFetches."""
        settings = self._settings()
        if not self._places.acquire(blocking=False):
            raise TooManyFetches(MAX_FETCHES)
        try:
            with self._http.fetch(url, PORTS, settings.max_upload_mb, ACCEPT) as fetched:
                yield _content_of(fetched), _name_of(url)
        finally:
            self._places.release()


def _content_of(fetched: Fetched) -> IO[bytes]:
    """Return the content, converted to UTF-8 if only the server declares its charset. Raises UnsupportedDocument."""
    kind = fetched.media_type
    if not kind.startswith(READABLE) or kind in NOT_READABLE:
        raise UnsupportedDocument(f'{fetched.url} is "{kind}", which cannot be read here.')
    try:
        charset = codecs.lookup(fetched.charset or "utf-8").name
        if charset == "utf-8" or not kind.startswith("text/"):
            return fetched.content
        text = fetched.content.read().decode(charset)
    except (LookupError, UnicodeError):
        fetched.content.seek(0)
        return fetched.content
    # With a byte order mark, which overrides what the page declares.
    return io.BytesIO(codecs.BOM_UTF8 + text.encode())


def _name_of(url: str) -> str:
    """Return the last part of an address's path, or its host."""
    path = url.partition("?")[0].split("/", 3)
    last = unquote(path[3].rstrip("/").rsplit("/", 1)[-1]) if len(path) > 3 else ""
    return last or path[2]
