"""Numbers, texts and bodies at the edge of what there is: refused by name or taken, never an error of the server."""

import pytest
from flask.testing import FlaskClient

from tests.testkit.stub_model import StubModel
from tests.web.conftest import ask

HUGE = 99999999999999999999


@pytest.mark.parametrize(
    "path",
    [
        f"/api/turns/{HUGE}",
        f"/api/turns/{HUGE}/stream",
        f"/api/conversations/{HUGE}",
        f"/api/documents/{2**31}",
        f"/conversations/{HUGE}",
        f"/documents/{HUGE}",
    ],
)
def test_an_id_that_cannot_be_one_is_not_found(empty: FlaskClient, path: str) -> None:
    assert empty.get(path).status_code == 404


def test_a_window_larger_than_anything_is_a_window_without_limit(client: FlaskClient, stub: StubModel) -> None:
    conversation = ask(client, "One", max_history_turns=HUGE)["conversation_id"]
    assert client.patch(f"/api/conversations/{conversation}", json={"max_history_turns": HUGE}).status_code == 200
    answer = ask(client, "Two", conversation_id=conversation)
    assert not answer["history_trimmed"]
    assert len(stub.requests[-1].messages) == 4
    assert client.get(f"/api/conversations/{conversation}").status_code == 200
    assert client.get(f"/conversations/{conversation}").status_code == 200


def test_a_number_with_thousands_of_digits_is_refused(client: FlaskClient) -> None:
    conversation = ask(client, "One")["conversation_id"]
    digits = "9" * 5000
    form = {"question": "Two", "conversation_id": digits}
    assert client.post("/ask", data=form).status_code == 422
    window = client.post(f"/conversations/{conversation}/change", data={"max_history_turns": digits})
    assert window.status_code == 422
    assert client.get(f"/api/conversations?cursor={digits}").status_code == 422
    assert client.get("/api/turns/1/stream", headers={"Last-Event-ID": digits}).status_code == 200


def test_a_body_that_is_nested_without_end_is_refused(empty: FlaskClient) -> None:
    for depth in (500, 980, 5000, 100_000):
        body = b'{"question": ' + b"[" * depth + b"]" * depth + b"}"
        response = empty.post("/api/query", data=body, content_type="application/json")
        assert response.status_code in (400, 422), depth


@pytest.mark.parametrize(
    "title", ["   ", "half \ud83d", *(pytest.param(title, marks=pytest.mark.long) for title in ("", "\0", "x" * 201))]
)
def test_a_title_that_cannot_be_seen_is_refused(client: FlaskClient, title: str) -> None:
    conversation = ask(client, "One")["conversation_id"]
    response = client.patch(f"/api/conversations/{conversation}", json={"title": title})
    assert response.status_code == 422
    assert client.get(f"/api/conversations/{conversation}").json["title"] == "One"


def test_a_title_is_trimmed(client: FlaskClient) -> None:
    conversation = ask(client, "One")["conversation_id"]
    assert client.patch(f"/api/conversations/{conversation}", json={"title": "  Geese "}).json["title"] == "Geese"


def test_the_form_takes_no_character_that_is_none(empty: FlaskClient) -> None:
    assert empty.post("/ask", data={"question": "a\0b"}).status_code == 422


def test_a_foreign_host_is_told_where_hosts_are_named(empty: FlaskClient) -> None:
    response = empty.get("/api/conversations", headers={"Host": "evil.example"})
    assert response.status_code == 400
    assert "evil.example" in response.json["error"]["message"]
    assert "allowed_hosts" in response.json["error"]["message"]


@pytest.mark.parametrize("host", ["127.0.0.1:8000", "localhost", "localhost:8000"])
def test_every_name_of_this_machine_is_known(empty: FlaskClient, host: str) -> None:
    assert empty.get("/healthz", headers={"Host": host}).status_code == 200


def test_a_body_that_is_too_large_is_told_the_limit(empty: FlaskClient) -> None:
    response = empty.post("/api/query", data=b"x" * 1_000_001, content_type="application/json")
    assert response.status_code == 413
    assert "the limit is 1 MB" in response.json["error"]["message"]


@pytest.mark.parametrize(
    ("path", "max_chars"),
    [("/api/search", 8000), ("/api/documents", 200), ("/documents", 200), ("/api/grids/{grid_id}/rows", 200)],
)
def test_words_to_search_for_that_are_too_long_are_refused(client: FlaskClient, path: str, max_chars: int) -> None:
    grid_id = client.post("/api/grids", json={"name": "Rents", "columns": [{"question": "Rent?"}]}).json["grid_id"]
    path = path.format(grid_id=grid_id)
    assert client.get(path, query_string={"q": "x" * max_chars}).status_code == 200
    response = client.get(path, query_string={"q": "x" * (max_chars + 1)}, headers={"Accept": "application/json"})
    assert response.status_code == 422
    assert f"it must have at most {max_chars}" in response.text


def test_the_page_searches_conversations_for_as_much_as_is_typed(client: FlaskClient) -> None:
    ask(client, "Geese?")
    page = client.get("/", query_string={"q": "x" * 201}).text
    assert f'"{"x" * 200}"' in page
    assert "x" * 201 not in page
