"""A server on loopback, and a client of OpenAI's own."""

import threading
from collections.abc import Iterator

import openai
import pytest
from flask import Flask
from werkzeug.serving import make_server


@pytest.fixture
def served(app: Flask) -> Iterator[str]:
    """The address of /v1 of the application."""
    server = make_server("127.0.0.1", 0, app, threaded=True)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/v1"
    server.shutdown()
    thread.join()


@pytest.fixture
def sdk(served: str) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(base_url=served, api_key="not-needed", max_retries=0) as client:
        yield client
