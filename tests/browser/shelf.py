"""Put documents on the shelf of a server past its pages, and wait until they are ready."""

import json
import time
import urllib.request

from tests.testkit.server_process import ServerProcess

FACT = "The lighthouse keeper feeds seventeen geese."
BOUNDARY = "a-line-that-stands-in-no-file"


def upload(server: ServerProcess, name: str, content: str | bytes, *, tags: str = "", wait: bool = True) -> int:
    """Add a document, wait until it is worked through, and return its id."""
    content = content.encode() if isinstance(content, str) else content
    head = f'--{BOUNDARY}\r\nContent-Disposition: form-data; name="tags"\r\n\r\n{tags}\r\n--{BOUNDARY}\r\n'
    head += f'Content-Disposition: form-data; name="file"; filename="{name}"\r\n\r\n'
    body = head.encode() + content + f"\r\n--{BOUNDARY}--\r\n".encode()
    kind = {"Content-Type": f"multipart/form-data; boundary={BOUNDARY}"}
    with urllib.request.urlopen(
        urllib.request.Request(f"{server.url}/api/documents", body, kind), timeout=30
    ) as answer:
        added: int = json.load(answer)["document_id"]
    end = time.monotonic() + 60
    while wait and (state := server.call("GET", f"/api/documents/{added}")[1]["state"]) != "ready":
        assert state not in ("failed", "cancelled"), state
        assert time.monotonic() < end, state
        time.sleep(0.05)
    return added
