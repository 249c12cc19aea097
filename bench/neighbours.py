"""How much one person who runs into every limit slows down the light requests of another.

Quiet and busy phases take turns in one run, so that whatever else the machine does is in both, and what counts is the
median of the rounds. The person who takes everything is another process, with a lower priority: it would not be on the
same machine.
"""

from __future__ import annotations

import http.client
import io
import json
import os
import re
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from pathlib import Path
from statistics import median, quantiles

from testkit.server_process import PROJECT, Launch, ServerProcess, run_command
from testkit.stub_model import Reply, StubModel

ROUNDS = 8
PHASE_SECONDS = 3.0
SETTLE_SECONDS = 1.0
LIGHT = ("/api/account", "/api/conversations?limit=10", "/api/documents?limit=10")
SEARCHES, LISTS, STREAMS, UPLOADS = 16, 8, 32, 8
UNLIMITED = (
    "import rag_assistant.accounts.places as p; p.MAX_WORKING = 10_000; "
    "p.MAX_PLACES.update(dict.fromkeys(p.MAX_PLACES, 10_000)); import app, runpy; "
    "runpy.run_path('app.py', run_name='__main__')"
)


def main() -> None:
    """Print the latencies of light requests beside a quiet person and beside one who takes everything."""
    for name, launch in (("with places", run_command), ("without places", _without_places)):
        with tempfile.TemporaryDirectory() as folder:
            print(f"{name}: {_measure(Path(folder), launch)}", flush=True)


def _measure(folder: Path, launch: Launch) -> str:
    model = StubModel(Reply("word " * 50, seconds_between=0.02))
    server = ServerProcess(folder, launch, OPENAI_BASE_URL=model.url, OPENAI_MODEL="stub")
    tokens = [_token_of(server, name) for name in ("Ann", "Ben")]
    server.start("/readyz")
    found: dict[bool, list[list[float]]] = {False: [], True: []}
    answers: Counter[str] = Counter()
    try:
        for _ in range(ROUNDS):
            for busy in (False, True):
                taker = _taker(server.port, tokens[0]) if busy else None
                time.sleep(SETTLE_SECONDS)
                found[busy].append(_light_requests(server.port, tokens[1]))
                if taker is not None:
                    answers += Counter(json.loads(taker.communicate("\n")[0]))
    finally:
        server.terminate()
        model.close()
    return _in_words(found, answers)


def _token_of(server: ServerProcess, name: str) -> str:
    def run(*words: str) -> str:
        command = [sys.executable, "app.py", "accounts", *words]
        return subprocess.check_output(command, cwd=PROJECT, env=server.environment, text=True)

    run("add", name, "--link")
    made = run("token", name, "--name", "bench", "--scope", "read", "--scope", "ask", "--scope", "documents")
    found = re.search(r"rag_[\w-]{43}", made)
    assert found is not None, made
    return found[0]


def _without_places(environment: dict[str, str], log: Path) -> subprocess.Popen[bytes]:
    with log.open("ab") as written:
        return subprocess.Popen(
            [sys.executable, "-c", UNLIMITED], cwd=PROJECT, env=environment, stdout=written, stderr=written,
            start_new_session=True,
        )  # fmt: skip


def _light_requests(port: int, token: str) -> list[float]:
    """Send one light request after another over one connection; return how long each took, in seconds."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    taken, end = [], time.monotonic() + PHASE_SECONDS
    while time.monotonic() < end:
        for path in LIGHT:
            began = time.perf_counter()
            connection.request("GET", path, headers={"Authorization": f"Bearer {token}"})
            response = connection.getresponse()
            response.read()
            assert response.status == 200, response.status
            taken.append(time.perf_counter() - began)
            time.sleep(0.005)
    connection.close()
    return taken


def _taker(port: int, token: str) -> subprocess.Popen[str]:
    command = ["nice", "-n", "10", sys.executable, "-m", "bench.neighbours", str(port)]
    taker = subprocess.Popen(command, cwd=PROJECT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert taker.stdin is not None
    taker.stdin.write(f"{token}\n")
    taker.stdin.flush()
    return taker


def take_everything(port: int) -> None:
    """Search, list, ask and upload with as many connections as that takes, until a line comes; print the statuses."""
    token = input()
    done, counts = threading.Event(), Counter[str]()

    def repeat(kind: str, method: str, path: str, body: bytes | None, media_type: str) -> None:
        number = 0
        while not done.is_set():
            number += 1
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
            headers = {"Authorization": f"Bearer {token}", "Content-Type": media_type}
            sent = None if body is None else body.replace(b"NUMBER", f"{number} {threading.get_ident()}".encode())
            try:
                connection.request(method, path, sent, headers)
                response = connection.getresponse()
                response.read()
                counts[f"{kind} {response.status}"] += 1
            except (OSError, http.client.HTTPException):
                counts[f"{kind} broken"] += 1
            finally:
                connection.close()

    form = io.BytesIO()
    form.write(b'--x\r\nContent-Disposition: form-data; name="file"; filename="note.txt"\r\n\r\n')
    form.write(b"NUMBER " + b"Geese hiss at lighthouse keepers. " * 3000 + b"\r\n--x--\r\n")
    kinds = [
        *[("search", "GET", "/api/search?q=geese+hiss", None, "")] * SEARCHES,
        *[("list", "GET", "/api/conversations", None, "")] * LISTS,
        *[("stream", "POST", "/api/query/stream", b'{"question": "Why NUMBER?"}', "application/json")] * STREAMS,
        *[("upload", "POST", "/api/documents", form.getvalue(), "multipart/form-data; boundary=x")] * UPLOADS,
    ]
    threads = [threading.Thread(target=repeat, args=one, daemon=True) for one in kinds]
    for thread in threads:
        thread.start()
    sys.stdin.readline()
    done.set()
    print(json.dumps(counts), flush=True)
    os._exit(0)  # What is still under way is over with this process.


def _in_words(found: dict[bool, list[list[float]]], answers: Counter[str]) -> str:
    """Return the medians over the rounds: one that something else disturbed decides nothing."""
    shown, ratios = [], []
    for name, percent in (("p50", 50), ("p99", 99)):
        quiet, busy = (
            median(quantiles(taken, n=100, method="inclusive")[percent - 1] for taken in found[one])
            for one in (False, True)
        )
        shown.append(f"{name} {1000 * quiet:.1f} ms quiet, {1000 * busy:.1f} ms busy")
        ratios.append(f"{name} x {busy / quiet:.2f}")
    count = sum(map(len, found[True]))
    return f"{'; '.join([*shown, *ratios])}; {count} requests beside {dict(sorted(answers.items()))}"


if __name__ == "__main__":
    take_everything(int(sys.argv[1]))
