"""Every list comes by page in the same way."""

import pytest
from flask.testing import FlaskClient

from tests.web.api.test_documents import upload
from tests.web.conftest import ask

LISTS = {
    "/api/conversations": "conversations",
    "/api/conversations/1/turns": "turns",
    "/api/documents": "documents",
}


@pytest.fixture
def path(request: pytest.FixtureRequest, client: FlaskClient) -> str:
    for n in range(4):
        upload(client, f"Document {n}.", f"{n}.txt")
        ask(client, conversation_id=1 if n else None)
        client.post("/api/conversations", json={"title": f"Plan {n}"})
    return str(request.param)


@pytest.mark.parametrize("path", LISTS, indirect=True)
@pytest.mark.parametrize(("param", "field"), [("cursor", "next_cursor"), ("before", "next_before")])
def test_following_the_cursor_gives_each_item_once(client: FlaskClient, path: str, param: str, field: str) -> None:
    whole = client.get(f"{path}?limit=200").json
    assert whole["next_cursor"] is None
    pages = []
    address = f"{path}?limit=2"
    while address:
        page = client.get(address).json
        assert page["next_cursor"] is None or isinstance(page["next_cursor"], str)
        pages.append(page[LISTS[path]])
        address = page[field] and f"{path}?limit=2&{param}={page[field]}"
    if path.endswith("/turns"):  # The latest page comes first, and each is in reading order.
        pages.reverse()
    assert [one for page in pages for one in page] == whole[LISTS[path]]
    assert all(pages), "there is no empty page at the end"


@pytest.mark.parametrize("path", LISTS, indirect=True)
def test_a_cursor_that_no_page_gave_is_refused(client: FlaskClient, path: str) -> None:
    for cursor in ("", "x", "0", "-1", "1e3"):
        response = client.get(f"{path}?cursor={cursor}")
        assert response.status_code == 422
        expected = f'cursor is "{cursor}"; it must be the next_cursor of the page before.'
        assert response.json["error"]["message"] == expected
    both = client.get(f"{path}?cursor=1&before=1")
    assert both.json["error"]["message"] == '"cursor" and "before" mean the same; send one of them.'
