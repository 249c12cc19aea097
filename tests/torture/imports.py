"""Exports of 50 MB, honest and hostile: the server stays small while it imports them, and others hardly notice."""

import http.client
import io
import json
import threading
import time
import urllib.error
import urllib.request
import zipfile
from collections.abc import Callable
from pathlib import Path
from statistics import mean

from tests.testkit.server_process import ServerProcess
from tests.torture.floods import other_process
from tests.torture.stage import Outcome, Stage, check_database

MAX_MORE_MB, MAX_RATIO, MAX_SECONDS = 300, 2.0, 2.0
ROUND_SECONDS = 0.5
WARM_UP_SECONDS = 5.0
SAMPLE_INTERVAL_SECONDS = 0.02
IMPORT_TIMEOUT_SECONDS = 300
SAID = "The geese of the northern lake hiss at whoever comes near their nest. "
MOMENT = "2026-01-01T00:00:00Z"


def imports(stage: Stage) -> Outcome:
    """Import large files of many shapes while another program reads and asks; compare its pace with that before."""
    outcome, stub = Outcome(), stage.echo()
    server = stage.server(stub.url)
    server.start("/readyz")
    other, notes = stage.enter(other_process()), []
    time.sleep(WARM_UP_SECONDS)  # Chroma loads in the background.
    other.submit(paces, server.url, 0, 1.0).result()
    for name, (content, allowed) in shapes(stage.count(2_000_000, 49_000_000)).items():
        outcome.tried += 1
        usual = other.submit(paces, server.url, outcome.tried * 100_000, stage.count(1, 4) * ROUND_SECONDS).result()
        statuses: list[int] = []
        importer = threading.Thread(target=send, args=(server, content(), statuses))
        began, before, more = time.monotonic(), memory(server), 0
        importer.start()
        meanwhile: list[float] = []
        while importer.is_alive():
            asked = other.submit(paces, server.url, outcome.tried * 100_000 + 10_000 + len(meanwhile), ROUND_SECONDS)
            while not asked.done():
                more = max(more, memory(server) - before)
                time.sleep(SAMPLE_INTERVAL_SECONDS)
            meanwhile += asked.result()
        ratio = mean(meanwhile) / mean(usual)
        notes.append(
            f"{name}: {statuses}, {time.monotonic() - began:.1f} s, {more} MB more, others {ratio:.1f} times as slow, "
            f"at most {max(meanwhile):.2f} s, usually {mean(usual) * 1000:.0f} ms"
        )
        if statuses not in ([status] for status in allowed):
            outcome.wrong.append(notes[-1])
        if stage.is_full and (more > MAX_MORE_MB or ratio > MAX_RATIO or max(meanwhile) > MAX_SECONDS):
            outcome.wrong.append(notes[-1])
    outcome.note = "\n".join(notes)
    check_database(server, outcome)
    return outcome


def shapes(size: int) -> dict[str, tuple[Callable[[], bytes], tuple[int, ...]]]:
    """Return what makes files of about ``size`` bytes, and how each may be answered."""
    return {
        "many conversations": (lambda: chats(size // 84_000, 100), (200,)),
        "one conversation": (lambda: chats(1, size // 2100, SAID * 28), (200,)),
        "many turns": (lambda: chats(1, size // 2200), (200,)),
        "an archive": (lambda: archive(size // 8), (200,)),
        "values in an entry": (lambda: repeated(b"[[", b"[],", b"[]]]", size), (422,)),
        "values in entries": (lambda: repeated(b"[", b"[" + b"{}," * 900_000 + b"{}],", b"[]]", size), (422,)),
        "entries": (lambda: repeated(b"[", b"{},", b"{}]", size), (422,)),
        "a zip of values": (lambda: packed(repeated(b"[", b"{},", b"{}]", size)), (422,)),
    }


def repeated(head: bytes, one: bytes, tail: bytes, size: int) -> bytes:
    """Return a text with as many of ``one`` as fit."""
    return head + one * (size // len(one)) + tail


def packed(text: bytes) -> bytes:
    """Return a zip file as ChatGPT sends it."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("conversations.json", text)
    return file.getvalue()


def chats(count: int, messages: int, said: str = SAID) -> bytes:
    """Return conversations as Open WebUI exports them."""
    return json.dumps([chat(f"c{n} {count} {messages}", messages, said) for n in range(count)]).encode()


def chat(name: str, messages: int, said: str) -> dict[str, object]:
    """Return one of them."""
    parents = [None, *map(str, range(messages))]
    nodes = {
        str(n): {
            "parentId": parents[n],
            "role": ("user", "assistant")[n % 2],
            "content": f"{name}, {n}: {said}",
        }
        for n in range(messages)
    }
    return {"id": name, "title": name, "chat": {"history": {"messages": nodes, "currentId": str(messages - 1)}}}


def archive(size: int) -> bytes:
    """Return an archive of ours with conversations of a hundred turns."""
    answer = {"messages": [{"role": "assistant", "content": SAID}]}
    lines: list[dict[str, object]] = [{"format": "rag-assistant", "version": 1}]
    for n in range(size // 29_000):
        made = f"2026-01-01T{n // 3600:02}:{n // 60 % 60:02}:{n % 60:02}Z"
        turns = [{"question": f"a{n}, {m}: {SAID}", "created_at": MOMENT, "answer": answer} for m in range(100)]
        one = {"id": n, "title": f"a{n}", "created_at": made, "updated_at": made, "turns": turns}
        lines.append({"conversation": one})
    return "\n".join(map(json.dumps, lines)).encode()


def send(server: ServerProcess, content: bytes, statuses: list[int]) -> None:
    """Import a file, and note the status."""
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=IMPORT_TIMEOUT_SECONDS)
    kind = "application/zip" if content.startswith(b"PK") else "application/json"
    connection.request("POST", "/api/conversations/import", content, {"Content-Type": kind})
    response = connection.getresponse()
    response.read()
    statuses.append(response.status)
    connection.close()


def paces(url: str, first: int, seconds: float) -> list[float]:
    """Read and ask for so long; return how many seconds each request took."""
    took: list[float] = []
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        question = json.dumps({"question": f"Question {first + len(took)}"}).encode()
        for path, body in (("/api/conversations", None), ("/api/query", question)):
            request = urllib.request.Request(url + path, body, {"Content-Type": "application/json"})
            began = time.monotonic()
            try:
                with urllib.request.urlopen(request, timeout=60) as response:
                    response.read()
            except urllib.error.HTTPError as error:
                raise AssertionError(f"{path}: {error.code}") from None
            took.append(time.monotonic() - began)
    return took


def memory(server: ServerProcess) -> int:
    """Return how many MB of its own the server has, without the processes that it started."""
    assert server.process is not None
    status = Path(f"/proc/{server.process.pid}/status").read_text()
    return int(status.partition("RssAnon:")[2].split()[0]) // 1024
