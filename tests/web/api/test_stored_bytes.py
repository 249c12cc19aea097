"""What a turn costs in the database beside its text: what was sent, compressed, however long it goes on."""

import pytest
from flask.testing import FlaskClient

from rag_assistant.services import Services
from tests.testkit.stub_model import StubModel
from tests.testkit.talk import Talk
from tests.web.conftest import upload

MAX_BYTES = {5: 8000, 20: 12_000}


def talk_about_a_book(client: FlaskClient, stub: StubModel, services: Services, window: int) -> Talk:
    talk = Talk(client, stub, services.database, window)
    upload(client, talk.book, "book.md")
    return talk


@pytest.mark.long
@pytest.mark.parametrize("window", [5, 20])
def test_a_turn_costs_little_beside_its_text(
    client: FlaskClient, stub: StubModel, services: Services, window: int
) -> None:
    talk = talk_about_a_book(client, stub, services, window)
    talk.go_on(12)
    assert talk.go_on(10) <= MAX_BYTES[window]


# The longer a conversation, the more of the turns that come back are there, up to five.
@pytest.mark.long
@pytest.mark.settings(HISTORY_RECALL="0")
@pytest.mark.parametrize("window", [5, 20])
def test_the_two_hundredth_turn_costs_what_the_sixtieth_did(
    client: FlaskClient, stub: StubModel, services: Services, window: int
) -> None:
    talk = talk_about_a_book(client, stub, services, window)
    talk.go_on(40)
    early = talk.go_on(20)
    talk.go_on(120)
    assert talk.go_on(20) <= min(MAX_BYTES[window], 1.1 * early)
