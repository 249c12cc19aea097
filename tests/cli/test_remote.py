"""``rag-assistant ask --server``: a server elsewhere, with a token, and every way in which that can fail."""

import json
import socket
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from flask import Flask

from rag_assistant.__main__ import program
from rag_assistant.services import Services
from tests.testkit.people import ACTOR, add_person, client_of, quick_passwords
from tests.testkit.stub_model import Reply, StubModel
from tests.web.conftest import app, environment, served, services, stand_ins, until, upload

__all__ = ["app", "environment", "served", "services", "stand_ins"]  # Fixtures.
PROJECT = Path(__file__).resolve().parents[2]


@pytest.fixture
def url(served: str) -> str:
    return served.removesuffix("/v1")


@pytest.fixture
def token(services: Services) -> str:
    with quick_passwords():
        person = add_person(services, "Ann")
        return services.accounts.make_token(person, "terminal", ["read", "ask"], 1, ACTOR)[0]


@pytest.fixture(autouse=True)
def _nowhere(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever this test asks for, no services of this machine are made."""
    monkeypatch.setattr("rag_assistant.services.open_services", lambda *_: pytest.fail("services were made"))


def run(*words: str, **variables: str) -> Result:
    return CliRunner().invoke(program, words, env=variables)


def test_an_answer_of_another_server_is_printed_with_its_sources(
    app: Flask, services: Services, url: str, token: str, stub: StubModel, tmp_path: Path
) -> None:
    with quick_passwords():
        upload(client_of(app, "Ann"), "The heron hisses at dawn.", "heron.txt")
    stub.default = Reply("At dawn [1].")
    first = run("ask", "--server", url, "When does the heron hiss?", RAG_ASSISTANT_TOKEN=token)
    assert (first.exit_code, first.stdout) == (0, "At dawn [1].\n"), first.output
    assert "[1] heron.txt" in first.stderr
    assert "Continue with: --conversation 1" in first.stderr
    file = tmp_path / "token"
    file.write_text(f"{token}\n")
    again = run("ask", "And?", "--conversation", "1", "--token-file", str(file), RAG_ASSISTANT_SERVER=f"{url}/")
    assert (again.exit_code, again.stdout) == (0, "At dawn [1].\n"), again.output
    assert stub.requests[-1].messages[-1]["content"].endswith("And?")
    asked = run(
        "ask", "More?", "--server", url, "--conversation", "1", "--max-history-turns", "0", RAG_ASSISTANT_TOKEN=token
    )
    assert "The model saw 0 of 2 earlier turns" in asked.stderr


def test_a_script_gets_the_answer_as_json(url: str, token: str) -> None:
    asked = run("ask", "Why?", "--server", url, "--json", RAG_ASSISTANT_TOKEN=token)
    assert asked.stderr == ""
    answer = json.loads(asked.stdout)
    assert (answer["answer"], answer["status"], answer["conversation_id"]) == ("An answer.", "completed", 1)


def test_it_is_printed_as_it_is_written(url: str, token: str, stub: StubModel) -> None:
    stub.default = Reply(pieces=["One", " two"] + [" word"] * 40, seconds_between=0.1)
    command = [sys.executable, "-m", "rag_assistant", "ask", "Why?", "--server", url]
    running = subprocess.Popen(
        command, cwd=PROJECT, env={"RAG_ASSISTANT_TOKEN": token, "PATH": ""}, stdout=subprocess.PIPE
    )  # fmt: skip
    assert running.stdout is not None
    assert running.stdout.read(3) == b"One"
    assert running.poll() is None
    assert token.encode() not in Path(f"/proc/{running.pid}/cmdline").read_bytes()
    running.terminate()
    running.communicate()


def test_without_accounts_no_token_is_needed(url: str) -> None:
    assert run("ask", "Why?", "--server", url).stdout == "An answer.\n"


@pytest.mark.long
def test_what_is_refused_there_is_said_with_an_exit_code_of_its_own(
    services: Services, environment: dict[str, str], url: str, token: str, stub: StubModel
) -> None:
    Path(environment["SETTINGS_FILE"]).write_text('{"max_questions_per_minute": 5}')
    until(lambda: services.settings.current.max_questions_per_minute == 5)
    none = run("ask", "Why?", "--server", url)
    assert (none.exit_code, none.stdout) == (3, "")
    assert "requires an API token. Put one into RAG_ASSISTANT_TOKEN" in none.stderr
    wrong = run("ask", "Why?", "--server", url, RAG_ASSISTANT_TOKEN="rag_wrong")
    assert (wrong.exit_code, "this token; it may have expired or been revoked" in wrong.stderr) == (3, True)
    narrow, _ = services.accounts.make_token(services.accounts.people.get("Ann"), "narrow", ["read"], 1, ACTOR)
    refused = run("ask", "Why?", "--server", url, RAG_ASSISTANT_TOKEN=narrow)
    assert (refused.exit_code, refused.stderr) == (3, 'Error: Only tokens with the scope "ask" can do this.\n')
    gone = run("ask", "Why?", "--server", url, "--conversation", "9", RAG_ASSISTANT_TOKEN=token)
    assert (gone.exit_code, gone.stderr) == (1, "Error: There is no conversation 9.\n")
    stub.replies.append(Reply(status=400))
    failed = run("ask", "Why?", "--server", url, RAG_ASSISTANT_TOKEN=token)
    assert failed.exit_code == 1
    assert "Error: The model at" in failed.stderr
    for _ in range(5):
        last = run("ask", "Why?", "--server", url, RAG_ASSISTANT_TOKEN=token)
        if last.exit_code:
            break
    assert last.exit_code == 4
    assert "You asked 5 questions within a minute. Try again in" in last.stderr
    assert token not in "".join(one.output for one in (none, wrong, refused, gone, failed, last))


class Other:
    """A server that is none of ours: it answers everything with the same."""

    def __init__(self, status: int, headers: dict[str, str], body: bytes) -> None:
        self.seen: list[Any] = []
        seen = self.seen

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                seen.append((self.path, dict(self.headers)))
                self.rfile.read(int(self.headers["Content-Length"]))
                self.send_response(status)
                for name, value in headers.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            do_GET = do_POST

            def log_message(self, *_: object) -> None:
                """Say nothing."""

        self.server = HTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, args=(0.02,), daemon=True).start()

    def close(self) -> None:
        self.server.shutdown()
        self.server.server_close()


EVENTS = {"Content-Type": "text/event-stream"}


@pytest.mark.parametrize(
    ("status", "headers", "body", "code", "said"),
    [
        (200, {"Content-Type": "text/html"}, b"<h1>It works!</h1>", 5, "is not an assistant"),
        (200, EVENTS, b"event: x\ndata: nonsense\n\n", 5, "is not an assistant"),
        (404, {}, b"not found", 5, "answered 404, but not as an assistant would."),
        (502, {}, b"<h1>Bad Gateway</h1>", 5, "answered 502, but not as an assistant would. Try again in a moment."),
        (302, {"Location": "https://evil.example/"}, b"", 5, "redirects to https://evil.example/"),
        (
            503,
            {"Retry-After": "7"},
            b'{"error": {"type": "X", "message": "Busy."}}',
            4,
            "Busy. Try again in 7 s.",
        ),
        (200, EVENTS, b"", 5, "broke off"),
    ],
)
def test_who_is_no_assistant_is_named(status: int, headers: dict[str, str], body: bytes, code: int, said: str) -> None:
    other = Other(status, headers, body)
    result = run("ask", "Why?", "--server", other.url, RAG_ASSISTANT_TOKEN="rag_canary")
    other.close()
    assert (result.exit_code, said in result.stderr) == (code, True), result.output
    assert result.stderr.count("\n") == 1
    assert "rag_canary" not in result.output


def test_who_cannot_be_reached_is_named(tmp_path: Path) -> None:
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        port = silent.getsockname()[1]
        refused = run("ask", "Why?", "--server", f"http://127.0.0.1:{port}")
    assert (refused.exit_code, "could not be reached: nothing is listening there" in refused.stderr) == (5, True)
    plain = Other(200, {}, b"")
    tls = run("ask", "Why?", "--server", plain.url.replace("http:", "https:"))
    plain.close()
    assert (tls.exit_code, "the server doesn't use TLS" in tls.stderr) == (5, True), tls.output


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--server", "assistant.example"), "must be a URL such as https://assistant.example"),
        (("--server", "ftp://assistant.example"), "must be a URL"),
        (("--server", "https://ann:secret@assistant.example"), "without a name, password or query"),
        (("--server", "https://assistant.example:port"), "must be a URL"),
        (("--server", "http://127.0.0.1:1", "--token-file", "no-such-file"), "no-such-file cannot be read"),
    ],
)
def test_what_is_wrong_with_the_command_is_said(words: tuple[str, ...], said: str) -> None:
    result = run("ask", "Why?", *words)
    assert (result.exit_code, said in result.stderr) == (2, True), result.output
    assert "secret@" not in result.output or "ann" in words[1]


def test_a_file_with_anything_but_a_token_is_refused(tmp_path: Path) -> None:
    for content in ("", "two words\n", "caf\u00e9"):
        (tmp_path / "token").write_text(content)
        result = run("ask", "Why?", "--server", "http://127.0.0.1:1", "--token-file", str(tmp_path / "token"))
        assert (result.exit_code, "must contain an API token and nothing else" in result.stderr) == (2, True)
    result = run("ask", "Why?", "--server", "http://127.0.0.1:1", RAG_ASSISTANT_TOKEN="caf\u00e9")
    assert (result.exit_code, "RAG_ASSISTANT_TOKEN must contain an API token" in result.stderr) == (2, True)


def test_a_broken_connection_is_taken_up_where_it_broke() -> None:
    def event(name: str, data: dict[str, Any], position: int | None = None) -> bytes:
        head = f"event: {name}\n" + (f"id: {position}\n" if position is not None else "")
        return f"{head}data: {json.dumps(data)}\n\n".encode()

    parts = [
        event("start", {"turn_id": 7}) + event("token", {"text": "At "}, 3),
        event("token", {"text": "dawn."}, 8) + event("end", {"turn_id": 7, "answer": "At dawn."}),
    ]
    seen: list[Any] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            seen.append((self.command, self.path, self.headers.get("Last-Event-ID")))
            self.rfile.read(int(self.headers.get("Content-Length", 0)))
            self.send_response(200)
            self.send_header("Content-Type", "text/event-stream")
            self.end_headers()
            self.wfile.write(parts[len(seen) - 1])

        do_GET = do_POST

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    server = HTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    result = run("ask", "When?", "--server", f"http://127.0.0.1:{server.server_port}")
    server.shutdown()
    server.server_close()
    assert (result.exit_code, result.stdout) == (0, "At dawn.\n"), result.output
    assert seen == [("POST", "/api/query/stream", None), ("GET", "/api/turns/7/stream", "3")]


@pytest.fixture
def certificate(tmp_path: Path) -> Path:
    file = tmp_path / "certificate.pem"
    made = subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
         "-keyout", str(file), "-out", str(tmp_path / "c"), "-days", "1", "-subj", "/CN=localhost"],
        capture_output=True, check=False,
    )  # fmt: skip
    if made.returncode:
        pytest.skip("openssl is not installed")
    file.write_text(file.read_text() + (tmp_path / "c").read_text())
    return file


def test_a_certificate_that_nobody_vouches_for_is_refused(certificate: Path) -> None:
    import ssl

    other = Other(200, {}, b"")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    other.server.socket = context.wrap_socket(other.server.socket, server_side=True)
    result = run("ask", "Why?", "--server", other.url.replace("http://127.0.0.1", "https://localhost"))
    other.close()
    assert (result.exit_code, "its certificate is not trusted (self-signed certificate)" in result.stderr) == (5, True)
    assert other.seen == []
