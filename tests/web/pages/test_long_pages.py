"""What a page draws is bounded, however long the conversation is that it is about."""

import re

import pytest
from flask.testing import FlaskClient
from sqlalchemy import update

from rag_assistant.conversations.actions import HistoryActions
from rag_assistant.conversations.bill import Bill, BillItem
from rag_assistant.services import Services
from rag_assistant.storage.tables import receipts
from tests.web.conftest import ask

PAGE = {"Accept": "text/html"}
TURN = re.compile(r"<span>Turn (\d+)</span>")


@pytest.mark.long
def test_a_receipt_of_thousands_of_turns_has_pages(client: FlaskClient, services: Services) -> None:
    turn_id, count = ask(client)["turn_id"], 2000
    said = [{"role": role, "content": f"{role} {n}"} for n in range(1, count + 1) for role in ("user", "assistant")]
    request = {"model": "m", "messages": [{"role": "system", "content": "Answer."}, *said, said[0]]}
    body = {"request": request, "kept_turns": list(range(1, count + 1)), "prefix_messages": 1 + 2 * count}
    with services.database.write() as connection:
        connection.execute(update(receipts).values(body=body | {"left_out": []}))
    address, shown = f"/turns/{turn_id}/receipt", set()
    while address:
        page = client.get(address, headers=PAGE).text
        assert len(page) < 200_000
        assert page.count('<details class="part of-question"') == 1
        shown |= set(map(int, TURN.findall(page)))
        older = re.search(r'class="earlier"><a data-drawer href="([^"]+)"', page)
        address = older[1] if older else ""
    assert shown == set(range(1, count + 1))
    assert "earlier messages are only in the JSON." in page


def test_a_summary_that_may_lose_thousands_of_sentences_lists_the_newest(
    client: FlaskClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    conversation_id = ask(client)["conversation_id"]
    items = tuple(
        BillItem(f"{n}-1", n, "user", f"It costs {n} euros.", (f"{n}",), n == 1, "always" if n == 1 else "offered")
        for n in range(1, 5001)
    )
    monkeypatch.setattr(HistoryActions, "bill", lambda *_: Bill((1, 5000), items, 500))
    page = client.get(f"/conversations/{conversation_id}/bill", headers=PAGE).text
    assert len(page) < 150_000
    assert re.findall(r'name="keep" value="(\d+)-1"', page) == ["1", *map(str, range(4801, 5001))]
    assert "The newest 200 are listed." in page
