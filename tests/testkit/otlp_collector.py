"""An OpenTelemetry collector on loopback that records spans."""

import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any


class Collector:
    """Receives spans on loopback."""

    def __init__(self) -> None:
        self.bodies: list[bytes] = []
        self.paths: set[str] = set()
        collector = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                collector.paths.add(self.path)
                collector.bodies.append(self.rfile.read(int(self.headers["Content-Length"])))
                self.send_response(200)
                self.end_headers()

            def log_message(self, *_: object) -> None:
                """Say nothing."""

        self._server = HTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()

    def spans(self) -> list[Any]:
        """Return all spans that arrived, in the order in which they ended."""
        from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

        requests = [ExportTraceServiceRequest.FromString(body) for body in self.bodies]
        scopes = [scope for request in requests for one in request.resource_spans for scope in one.scope_spans]
        return [span for scope in scopes for span in scope.spans]

    def close(self) -> None:
        """Stop listening."""
        self._server.shutdown()
        self._server.server_close()
