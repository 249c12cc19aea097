"""The forms below an answer lead back to it, in however long a conversation."""

import pytest
from flask.testing import FlaskClient

from tests.web.conftest import ask, post


@pytest.mark.parametrize(
    ("action", "fields"),
    [("mark", {"pinned": "true"}), ("mark", {"excluded": "true"}), ("rating", {"rating": "up"}), ("erase", {})],
)
def test_a_form_leads_back_to_its_turn(client: FlaskClient, action: str, fields: dict[str, str]) -> None:
    ask(client)
    assert post(client, f"/turns/1/{action}", **fields) == (303, "/conversations/1?at=1#turn-1")
