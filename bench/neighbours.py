"""How much one person at all limits slows down another's light requests.

Quiet and busy blocks alternate in one run, so that other load on the machine affects both. Each block has hundreds of
requests; the result is the median of the blocks, which a single disturbed one does not move. The person with light
requests, the one at the limits and the model are separate processes, so that none waits for another; the latter two
have a lower priority: they would not be on the same machine.
"""

import contextlib
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
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median, quantiles
from typing import Any

from tests.testkit.server_process import PROJECT, Launch, ServerProcess, run_command
from tests.testkit.stub_model import Reply, StubModel

ROUNDS = 8
BLOCK_SECONDS = 2.0
SETTLE_SECONDS = 0.7
LIGHT = ("/api/account", "/api/conversations?limit=10", "/api/documents?limit=10")
SEARCHES, LISTS, STREAMS, UPLOADS = 16, 8, 32, 8
UNLIMITED = (
    "import rag_assistant.accounts.limits as p; "
    "p.MAX_PLACES.update(dict.fromkeys(p.MAX_PLACES, 10_000)); import app, runpy; "
    "runpy.run_path('app.py', run_name='__main__')"
)


def main() -> None:
    """Print the latencies of light requests beside an idle person and beside one at all limits."""
    for name, launch in (("with places", run_command), ("without places", _without_places)):
        measure(name, launch)


def measure(name: str, launch: Launch = run_command) -> None:
    """Print them for one kind of server; it takes about a minute."""
    with tempfile.TemporaryDirectory() as folder, _role("model") as model:
        url = _line_of(model)
        server = ServerProcess(Path(folder), launch, OPENAI_BASE_URL=url, OPENAI_MODEL="stub")
        tokens = [_token_of(server, person) for person in ("Ann", "Ben")]
        server.start("/readyz")
        server_cpu = _cpu_seconds(server)
        found: dict[bool, list[list[float]]] = {False: [], True: []}
        answers: Counter[str] = Counter()
        try:
            with _role("light", str(server.port), tokens[1]) as light:
                for _ in range(ROUNDS):
                    for busy in (False, True):
                        with _busy(server.port, tokens[0], answers) if busy else contextlib.nullcontext():
                            time.sleep(SETTLE_SECONDS)
                            found[busy].append(json.loads(_ask(light)))
                    _cancel_all(server.port, tokens[0])
            cpu = _cpu_seconds(server) - server_cpu
        finally:
            server.terminate()
    print(f"{name}: {_in_words(found, answers)}; {cpu:.0f} s of CPU", flush=True)


def _role(*words: str) -> subprocess.Popen[str]:
    """Run this module in one of its roles; it ends with its input."""
    first = [] if words[0] == "light" else ["nice", "-n", "10"]
    command = [*first, sys.executable, "-m", "bench.neighbours", *words]
    return subprocess.Popen(command, cwd=PROJECT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def _line_of(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


def _ask(process: subprocess.Popen[str]) -> str:
    assert process.stdin is not None
    process.stdin.write("\n")
    process.stdin.flush()
    return _line_of(process)


@contextlib.contextmanager
def _busy(port: int, token: str, answers: Counter[str]) -> Iterator[None]:
    taker = _role("taker", str(port), token)
    assert _line_of(taker) == "ready"
    yield
    answers.update(json.loads(taker.communicate("\n")[0]))


def _cancel_all(port: int, token: str) -> None:
    """Cancel what the taker has uploaded, and wait until the server is idle."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)

    def send(method: str, path: str) -> dict[str, Any]:
        while True:
            connection.request(method, path, headers={"Authorization": f"Bearer {token}"})
            response = connection.getresponse()
            answer: dict[str, Any] = json.load(response)
            if response.status != 429:
                return answer
            time.sleep(0.1)  # The taker's requests are still running.

    while left := [
        one["document_id"]
        for state in ("queued", "reading", "embedding")
        for one in send("GET", f"/api/documents?state={state}&limit=100")["documents"]
    ]:
        for number in left:
            send("POST", f"/api/documents/{number}/cancel")
    connection.close()


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


def _cpu_seconds(server: ServerProcess) -> float:
    """Return the CPU time used by the server and its children."""
    assert server.process is not None
    seconds = 0.0
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            fields = (folder / "stat").read_text().rpartition(")")[2].split()
            if int(fields[3]) == server.process.pid or folder.name == str(server.process.pid):  # Its session.
                seconds += (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    return seconds


def light(port: str, token: str) -> None:
    """For each input line, send light requests one after another over one connection; print their latencies."""
    for _ in sys.stdin:
        connection = http.client.HTTPConnection("127.0.0.1", int(port), timeout=60)
        taken, end = [], time.monotonic() + BLOCK_SECONDS
        while time.monotonic() < end:
            for path in LIGHT:
                began = time.perf_counter()
                connection.request("GET", path, headers={"Authorization": f"Bearer {token}"})
                response = connection.getresponse()
                response.read()
                assert response.status == 200, response.status
                taken.append(time.perf_counter() - began)
        connection.close()
        print(json.dumps(taken), flush=True)


def model() -> None:
    """Serve a model that takes a second for each answer."""
    serving = StubModel(Reply("word " * 50, seconds_between=0.02))
    print(serving.url, flush=True)
    sys.stdin.read()
    serving.close()


def taker(port: str, token: str) -> None:
    """Search, list, ask and upload with as many connections as possible until a line arrives; print the statuses."""
    done, counts = threading.Event(), Counter[str]()

    def repeat(kind: str, method: str, path: str, body: bytes | None, media_type: str) -> None:
        number = 0
        while not done.is_set():
            number += 1
            connection = http.client.HTTPConnection("127.0.0.1", int(port), timeout=60)
            headers = {"Authorization": f"Bearer {token}", "Content-Type": media_type}
            which = f"{time.monotonic_ns()} {threading.get_ident()}"
            sent = None if body is None else body.replace(b"NUMBER", which.encode())
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
    print("ready", flush=True)
    sys.stdin.readline()
    done.set()
    print(json.dumps(counts), flush=True)
    os._exit(0)  # Unfinished requests end with this process.


def _in_words(found: dict[bool, list[list[float]]], answers: Counter[str]) -> str:
    """Return the medians over the blocks, and the range of ratios of neighbouring blocks."""
    shown = []
    for name, percent in (("p50", 50), ("p99", 99)):
        quiet, busy = (
            [1000 * quantiles(taken, n=100, method="inclusive")[percent - 1] for taken in found[one]]
            for one in (False, True)
        )
        pairs = sorted(b / q for q, b in zip(quiet, busy, strict=True))
        shown.append(
            f"{name} {median(quiet):.1f} ms quiet, {median(busy):.1f} ms busy, x {median(pairs):.2f} "
            f"({pairs[0]:.2f} to {pairs[-1]:.2f})"
        )
    counts = [sum(map(len, found[one])) for one in (False, True)]
    return f"{'; '.join(shown)}; {counts[0]} and {counts[1]} requests beside {dict(sorted(answers.items()))}"


if __name__ == "__main__":
    role, *words = sys.argv[1:]
    roles: dict[str, Callable[..., None]] = {"model": model, "light": light, "taker": taker, "measure": measure}
    roles[role](*words)
