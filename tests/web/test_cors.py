"""Pages of origins that are named may use the API from a browser, those of all others may not."""

from collections.abc import Iterator

import pytest
from flask.testing import FlaskClient

from rag_assistant.web import create_app

ORIGIN = "https://app.example"
MODELS, CHAT = "/v1/models", "/v1/chat/completions"
BODY = {"model": "rag-assistant", "messages": [{"role": "user", "content": "Why?"}]}
ASKS = {"Origin": ORIGIN, "Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": "authorization"}
FROM_A_PAGE = {"Origin": ORIGIN, "Sec-Fetch-Site": "cross-site"}


@pytest.fixture
def named(environment: dict[str, str]) -> Iterator[FlaskClient]:
    app = create_app(environment | {"CORS_ORIGINS": f'["{ORIGIN}"]'})
    app.extensions["assistant"].start()
    yield app.test_client()
    app.extensions["assistant"].close()


def test_a_page_of_a_named_origin_may_ask(named: FlaskClient) -> None:
    preflight = named.options(CHAT, headers=ASKS)
    assert (preflight.status_code, preflight.headers["Access-Control-Allow-Origin"]) == (204, ORIGIN)
    assert preflight.headers["Access-Control-Allow-Headers"] == "authorization"
    assert "POST" in preflight.headers["Access-Control-Allow-Methods"]
    answer = named.post(CHAT, json=BODY, headers=FROM_A_PAGE)
    assert (answer.status_code, answer.headers["Access-Control-Allow-Origin"]) == (200, ORIGIN)
    assert "Access-Control-Allow-Credentials" not in answer.headers
    assert "Origin" in answer.vary


@pytest.mark.parametrize("origin", ["https://app.example.evil", "http://app.example", "null", "https://APP.example/"])
def test_no_other_origin_may(named: FlaskClient, origin: str) -> None:
    assert "Access-Control-Allow-Origin" not in named.options(CHAT, headers=ASKS | {"Origin": origin}).headers
    assert named.post(CHAT, json=BODY, headers=FROM_A_PAGE | {"Origin": origin}).status_code == 403


def test_cookies_and_pages_stay_our_own(named: FlaskClient) -> None:
    assert named.post("/language", data={}, headers=FROM_A_PAGE).status_code == 403
    assert "Access-Control-Allow-Origin" not in named.get("/", headers=FROM_A_PAGE).headers
    named.set_cookie("session", "x")
    assert named.post(CHAT, json=BODY, headers=FROM_A_PAGE).status_code == 403


def test_by_default_no_origin_is_named(empty: FlaskClient) -> None:
    assert "Access-Control-Allow-Origin" not in empty.get(MODELS, headers={"Origin": ORIGIN}).headers
    assert empty.post(CHAT, json=BODY, headers=FROM_A_PAGE).status_code == 403
