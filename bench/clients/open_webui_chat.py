"""Open WebUI, a chat front end, started with our address as its only OpenAI connection: its models, a chat, a stream."""

import json
import os
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path
from typing import Any

PORT = 18_765
URL = f"http://127.0.0.1:{PORT}"
QUESTION = "What does the lamp of the lighthouse burn?"
MODEL = "rag-assistant"
MINUTES = 5


def call(path: str, body: Any = None, token: str | None = None) -> bytes:
    """Return the body of Open WebUI's answer."""
    headers = {"Content-Type": "application/json"} | ({"Authorization": f"Bearer {token}"} if token else {})
    data = None if body is None else json.dumps(body).encode()
    with urllib.request.urlopen(urllib.request.Request(URL + path, data, headers), timeout=60) as response:
        return response.read()


def talk() -> None:
    """Ask over Open WebUI's own API, which its page uses."""
    token = json.loads(call("/api/v1/auths/signin", {"email": "", "password": ""}))["token"]
    found = json.loads(call("/api/models", token=token))["data"]
    print("models:", ", ".join(one["id"] for one in found))
    asked = {"model": "rag-assistant", "messages": [{"role": "user", "content": QUESTION}]}
    answer = json.loads(call("/api/chat/completions", asked | {"stream": False}, token))
    print("chat:", answer["choices"][0]["message"]["content"])
    lines = call("/api/chat/completions", asked | {"stream": True}, token).decode().splitlines()
    chunks = [json.loads(line[6:]) for line in lines if line.startswith("data: {")]
    print("stream:", "".join(one["choices"][0]["delta"].get("content", "") for one in chunks if one.get("choices")))
    print("as its page, with tools of its own:", on_its_page(asked, token))


def on_its_page(asked: dict[str, Any], token: str) -> str:
    """Return the content of a stored chat, in the way its page does: with a session, it adds its own tools."""
    question = {"id": "q", "parentId": None, "childrenIds": ["a"], "role": "user", "content": QUESTION}
    answer = {"id": "a", "parentId": "q", "childrenIds": [], "role": "assistant", "content": "", "model": MODEL}
    messages = {"q": question, "a": answer}
    chat = {"title": "Lamp", "models": [MODEL], "history": {"messages": messages, "currentId": "a"}, "messages": []}
    chat_id = json.loads(call("/api/v1/chats/new", {"chat": chat}, token))["id"]
    page = {"chat_id": chat_id, "id": "a", "session_id": "a page", "stream": True}
    call("/api/chat/completions", asked | page, token)
    for _ in range(60):
        told = json.loads(call(f"/api/v1/chats/{chat_id}", token=token))["chat"]["history"]["messages"]["a"]
        if told.get("done"):
            kinds = [one["type"] for one in told.get("output", ())]
            return f"{told['content'].splitlines()[-1]} | {', '.join(kinds)}"
        time.sleep(1)
    return f"no answer: {told}"


with tempfile.TemporaryDirectory() as folder:
    environment = dict(os.environ) | {
        "DATA_DIR": folder,
        "OPENAI_API_BASE_URL": sys.argv[1],
        "OPENAI_API_KEY": "none",
        "ENABLE_OLLAMA_API": "false",
        "WEBUI_AUTH": "false",
        "OFFLINE_MODE": "true",
        "RAG_EMBEDDING_ENGINE": "openai",
        "RAG_EMBEDDING_MODEL": "rag-assistant-embeddings",
        "RAG_OPENAI_API_BASE_URL": sys.argv[1],
        "WEBUI_SECRET_KEY": "of this run",
    }
    program = str(Path(sys.executable).parent / "open-webui")
    log = Path(folder) / "log"
    with log.open("wb") as written:
        server = subprocess.Popen(
            [program, "serve", "--host", "127.0.0.1", "--port", str(PORT)], cwd=folder, env=environment,
            stdout=written, stderr=written,
        )  # fmt: skip
    try:
        end = time.monotonic() + 60 * MINUTES
        while True:
            try:
                call("/health")
                break
            except OSError:
                if server.poll() is not None or time.monotonic() > end:
                    raise SystemExit(log.read_text()[-3000:]) from None
                time.sleep(1)
        talk()
    finally:
        server.terminate()
        server.wait()
