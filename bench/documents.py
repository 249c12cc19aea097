"""(e) Readable documents: real, odd and broken files through the real upload; what is found, how long it takes, and the
effect on other requests.

Needs the shared data. A document is judged as soon as it is read, and deleted: embedding is measured elsewhere.
"""

import http.client
import json
import re
import tempfile
import threading
import time
import uuid
from collections import Counter
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil

from bench.stage import percentile, server

DATA = Path(__file__).resolve().parents[2] / "shared" / "data" / "documents"
SAME_KIND = {"htm": "html", "docm": "docx", "dotx": "docx", "pptm": "pptx", "xlsm": "xlsx"}
READING = ("queued", "reading")
SLOW_SECONDS = 30.0
MAX_WAIT_SECONDS = 150.0
POLL_INTERVAL_SECONDS = 0.02
QUIET_SECONDS = 20.0
LIGHT = ("/healthz", "/api/conversations")
LIGHT_PER_SECOND = 20
# A shorter text is page breaks and page numbers.
MIN_ORACLE_CHARS = 20


@dataclass
class Judged:
    """The result of one file."""

    kind: str
    outcome: str
    seconds: float | None = None
    recall: float | None = None
    warned: bool = False


@dataclass
class Watch:
    """Sends light requests repeatedly, and records their latency."""

    host: str
    seconds: list[float] = field(default_factory=list)
    failures: int = 0
    ended: threading.Event = field(default_factory=threading.Event)

    def run(self) -> None:
        connection = http.client.HTTPConnection(self.host, timeout=30)
        while not self.ended.is_set():
            for path in LIGHT:
                began = time.monotonic()
                try:
                    status, _ = ask(connection, "GET", path)
                    self.failures += status != 200
                except OSError:
                    self.failures += 1
                    connection.close()
                self.seconds.append(time.monotonic() - began)
                self.ended.wait(max(0.0, 1 / LIGHT_PER_SECOND - (time.monotonic() - began)))
        connection.close()


def main() -> None:
    """Upload every file, and print the results by kind."""
    files = [json.loads(line) for line in (DATA / "manifest.jsonl").open(encoding="utf-8")]
    expected = [json.loads(line) for line in (DATA / "expected.jsonl").open(encoding="utf-8")]
    references = {row["path"]: row for row in expected if row["kind"] in ("reference_markdown", "must_include")}
    with tempfile.TemporaryDirectory() as folder, start(folder) as (url, process):
        host = url.removeprefix("http://")
        connection = http.client.HTTPConnection(host, timeout=30)
        wait_until_idle(connection)
        quiet = watched(host)
        time.sleep(QUIET_SECONDS)
        quiet = ended(quiet)
        worker = worker_of(process)
        before = pss_mb(worker)
        busy = watched(host)
        began = time.monotonic()
        judged = [judge(connection, file, references.get(file["path"])) for file in files]
        seconds = time.monotonic() - began
        busy = ended(busy)
        connection.close()
        alive = worker.is_running() and ask(connection, "GET", "/healthz")[0] == 200
        after = pss_mb(worker)
    print(table(judged))
    slow = sum((one.seconds or 0) > SLOW_SECONDS for one in judged)
    print(f"\n{len(judged)} files in {seconds:.0f} s. Crashes of the server: {0 if alive else 1}; ", end="")
    print(f"light requests that failed: {quiet.failures + busy.failures}; files over {SLOW_SECONDS:g} s: {slow}.")
    print(f"Memory of the web process (PSS): {before:.0f} MB before, {after:.0f} MB after.")
    calm, under_load = percentile(quiet.seconds, 0.99), percentile(busy.seconds, 0.99)
    print(
        f"p99 of a light request ({len(busy.seconds)} of them): {calm * 1000:.1f} ms without and "
        f"{under_load * 1000:.1f} ms with the ingest, {under_load / calm:.1f} times as long."
    )


def start(folder: str) -> AbstractContextManager[tuple[str, psutil.Process]]:
    """Start a server with an unused remote model."""
    return server(Path(folder) / "data", OPENAI_BASE_URL="http://127.0.0.1:9", OCR="off")


def worker_of(process: psutil.Process) -> psutil.Process:
    """Return the serving process: one that crashed would be replaced by another."""
    return next(child for child in process.children() if "app.py" in child.cmdline())


def judge(connection: http.client.HTTPConnection, file: dict[str, Any], reference: dict[str, Any] | None) -> Judged:
    """Upload a file, wait until it is read, judge its text, delete it."""
    connection.close()  # The server closes idle connections; the next request reopens it.
    path = DATA / file["path"]
    kind = SAME_KIND.get(file["ext"], file["ext"])
    status, answer = upload(connection, path)
    if status != 202:
        return Judged(kind, "refused" if status == 415 else f"HTTP {status}", recall=recall(file, reference, ""))
    document, seconds = wait_until_read(connection, answer["document_id"])
    text = ""
    if document["state"] != "failed":
        text = ask(connection, "GET", f"/api/documents/{document['document_id']}/text")[1]["text"]
    ask(connection, "DELETE", f"/api/documents/{document['document_id']}")
    outcome = "failed" if document["state"] == "failed" else "ready"
    if outcome == "failed":
        print(f"<!-- {file['path']}: {document['reason']} -->", flush=True)
    return Judged(
        kind, outcome, seconds, recall(file, reference, text), outcome == "ready" and document["reason"] is not None
    )


def wait_until_read(connection: http.client.HTTPConnection, document_id: int) -> tuple[dict[str, Any], float]:
    """Return a document once it has been read, and how long that took from the start of reading."""
    began = started = time.monotonic()
    while True:
        document: dict[str, Any] = ask(connection, "GET", f"/api/documents/{document_id}")[1]
        now = time.monotonic()
        if document["state"] == "queued":
            started = now
        if document["state"] not in READING:
            return document, now - started
        if now - began > MAX_WAIT_SECONDS:
            return document | {"state": "failed", "reason": "The benchmark did not wait any longer."}, now - started
        time.sleep(POLL_INTERVAL_SECONDS)


def recall(file: dict[str, Any], reference: dict[str, Any] | None, text: str) -> float | None:
    """Return the share of the reference's words that was found, with multiplicity.

    For a PDF without a reference, the output of pdftotext or pypdf counts by its length only, whichever found more.
    """
    if reference is not None:
        wanted = words(reference.get("reference_markdown") or " ".join(reference["must_include"]))
        return sum((wanted & words(text)).values()) / wanted.total() if wanted else None
    longest = max((found.get("chars") or 0 for name, found in file["oracle"].items() if name != "zip"), default=0)
    return min(1.0, len(text) / longest) if longest >= MIN_ORACLE_CHARS else None


def words(text: str) -> Counter[str]:
    """Return the words of a text with their counts."""
    return Counter(re.findall(r"\w+", text.lower().replace("_", " ")))


def table(judged: list[Judged]) -> str:
    """Return one row for each kind, most frequent first, and one for all."""
    lines = [
        "| kind | files | ready | of these with a warning | failed | refused (415) | recall (files) | p50 s | max s |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for kind, _ in Counter(one.kind for one in judged).most_common():
        lines.append(row(kind, [one for one in judged if one.kind == kind]))
    return "\n".join([*lines, row("all", judged)])


def row(name: str, rows: list[Judged]) -> str:
    """Return the figures of some files as a row."""
    outcomes = Counter(one.outcome for one in rows)
    found = [one.recall for one in rows if one.recall is not None]
    seconds = [one.seconds for one in rows if one.seconds is not None]
    other = sum(outcomes.values()) - outcomes["ready"] - outcomes["failed"] - outcomes["refused"]
    cells = [
        name + (f" ({other} with another answer)" if other else ""),
        str(len(rows)),
        str(outcomes["ready"]),
        str(sum(one.warned for one in rows)),
        str(outcomes["failed"]),
        str(outcomes["refused"]),
        f"{sum(found) / len(found):.3f} ({len(found)})" if found else "",
        f"{percentile(seconds, 0.5):.2f}" if seconds else "",
        f"{max(seconds):.2f}" if seconds else "",
    ]
    return f"| {' | '.join(cells)} |"


def upload(connection: http.client.HTTPConnection, path: Path) -> tuple[int, Any]:
    """Send a file as a form; return the status and the answer."""
    cut = uuid.uuid4().hex
    head = f'--{cut}\r\nContent-Disposition: form-data; name="file"; filename="{path.name}"\r\n\r\n'
    body = head.encode() + path.read_bytes() + f"\r\n--{cut}--\r\n".encode()
    return ask(connection, "POST", "/api/documents", body, f"multipart/form-data; boundary={cut}")


def ask(
    connection: http.client.HTTPConnection, method: str, path: str, body: bytes | None = None, kind: str | None = None
) -> tuple[int, Any]:
    """Return the status and the JSON of an answer."""
    connection.request(method, path, body, {"Content-Type": kind} if kind else {})
    with connection.getresponse() as response:
        content = response.read()
        return response.status, json.loads(content) if content.startswith((b"{", b"[")) else None


def wait_until_idle(connection: http.client.HTTPConnection) -> None:
    """Wait until the guide that every new library starts with is ready."""
    until = time.monotonic() + MAX_WAIT_SECONDS
    while time.monotonic() < until:
        listed = ask(connection, "GET", "/api/documents")[1]["documents"]
        if listed and all(document["state"] in ("ready", "failed") for document in listed):
            return
        time.sleep(0.2)


def watched(host: str) -> Watch:
    """Return a started watch."""
    watch = Watch(host)
    threading.Thread(target=watch.run, daemon=True).start()
    return watch


def ended(watch: Watch) -> Watch:
    """End a watch and return it."""
    watch.ended.set()
    return watch


def pss_mb(process: psutil.Process) -> float:
    """Return the memory of a process, with shared pages counted proportionally."""
    return float(process.memory_full_info().pss) / 1e6


if __name__ == "__main__":
    main()
