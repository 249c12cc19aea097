"""A server for tests that puts texts into pages as they are: no sanitiser, only the headers that our pages have."""

import html
import threading
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from rag_assistant.web.security import HEADERS

AT_ONCE = 100


class RawPages:
    """``/?2`` shows a batch of texts, each in a frame that has the policy of the page. ``guarded`` sends ours."""

    def __init__(self, guarded: bool, texts: list[str]) -> None:
        pages = self

        class Handler(_Handler):
            owner = pages

        self.guarded = guarded
        self.batches = [texts[start : start + AT_ONCE] for start in range(0, len(texts), AT_ONCE)]
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()

    def close(self) -> None:
        """Stop serving."""
        self._server.shutdown()
        self._server.server_close()


class _Handler(BaseHTTPRequestHandler):
    owner: RawPages
    protocol_version = "HTTP/1.1"

    def log_message(self, *_: object) -> None:
        """Say nothing."""

    def do_GET(self) -> None:
        path, _, number = self.path.partition("?")
        if path != "/" or not number.isdigit():
            return self._send(404, "", {})
        # Each text is a document of its own, so that none is swallowed by what stands before it.
        frames = "".join(
            f'<iframe srcdoc="{html.escape(f"<!doctype html><body>{text}")}"></iframe>'
            for text in self.owner.batches[int(number)]
        )
        return self._send(200, f"<!doctype html><body>{frames}", HEADERS if self.owner.guarded else {})

    do_POST = do_GET

    def _send(self, status: int, page: str, headers: Mapping[str, str]) -> None:
        body = page.encode()
        self.send_response(status)
        for name, value in ({"Content-Type": "text/html; charset=utf-8"} | dict(headers)).items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
