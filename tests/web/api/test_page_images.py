"""Pages with a figure: seen by a model that takes pictures, counted, cited; and named where none was seen."""

import base64
import re
from typing import Any

import pytest
from flask.testing import FlaskClient

from rag_assistant.answering.figures import is_about_figure
from rag_assistant.documents import page_images
from rag_assistant.records.errors import ExtractionFailed
from rag_assistant.services import Services
from tests.testkit.pdfs import chart_pdf
from tests.testkit.stub_model import Reply, StubModel
from tests.web.conftest import PAGE, ask, no_model, upload

TEXT = "The keeper counts the geese at the lighthouse every spring; the counts of five years are shown below."
QUESTION = "How many geese were counted at the lighthouse each year?"
UNREAD = "Page 2 of geese.pdf has a figure that was not read."


pytestmark = pytest.mark.settings(MODEL_IMAGES="true")


@pytest.fixture
def document_id(client: FlaskClient) -> int:
    return int(upload(client, chart_pdf("Boats pass. Gulls steal bread.", TEXT), "geese.pdf")["document_id"])


def pictures_of(message: dict[str, Any]) -> list[str]:
    content = message["content"]
    return [] if isinstance(content, str) else [one["image_url"]["url"] for one in content[1:]]


def test_the_page_of_a_figure_is_seen_cited_and_in_the_receipt(
    client: FlaskClient, stub: StubModel, document_id: int
) -> None:
    stub.default = Reply("About 4,711 geese in the fifth year [1].")
    answer = ask(client, QUESTION)
    [picture] = pictures_of(stub.requests[-1].messages[-1])
    assert base64.b64decode(picture.partition(",")[2]) == client.get(f"/documents/{document_id}/pages/2.png").data
    assert "one for each of these passages, in this order: [1]." in stub.requests[-1].messages[-1]["content"][0]["text"]
    source = answer["sources"][0]
    assert (source["cited"], source["page_image"], source["page"]) == (True, True, 2)
    assert (source["doubts"], answer["notes"]) == ([], []), "what is only in the picture can't be compared with text"
    assert client.get(f"/api/turns/{answer['turn_id']}/receipt").json["messages"] == stub.requests[-1].messages
    image = f"/api/turns/{answer['turn_id']}/images/1"
    assert image in client.get(f"/turns/{answer['turn_id']}/receipt", headers=PAGE).text
    assert client.get(image).data == base64.b64decode(picture.partition(",")[2])
    assert f"/documents/{document_id}/pages/2.png" in client.get(f"/turns/{answer['turn_id']}/sources/1").text
    again = ask(client, "And why?", conversation_id=answer["conversation_id"])
    assert pictures_of(stub.requests[-1].messages[1]) == [], again


@pytest.mark.long
def test_in_openais_protocol_it_is_the_same(client: FlaskClient, stub: StubModel, document_id: int) -> None:
    chat = {"model": "rag-assistant", "messages": [{"role": "user", "content": QUESTION}]}
    assert client.post("/v1/chat/completions", json=chat).status_code == 200
    assert len(pictures_of(stub.requests[-1].messages[-1])) == 1


@pytest.mark.long
def test_its_price_is_learned_from_the_endpoint(client: FlaskClient, stub: StubModel, document_id: int) -> None:
    stub.count = lambda messages: 900 + 2500 * len(pictures_of(messages[-1]))
    sent = [ask(client, QUESTION)["history"]["tokens"]["passages"] for _ in range(2)]
    assert sent[0] > 1000
    assert sent[1] - sent[0] > 1000


@pytest.mark.long
@pytest.mark.parametrize(("status", "times"), [(400, 1), (500, 3)])
def test_who_refuses_pictures_is_asked_without_and_remembered(
    client: FlaskClient, stub: StubModel, document_id: int, status: int, times: int
) -> None:
    refusal = b'{"error": {"message": "image input is not supported - hint: you may need to provide the mmproj"}}'
    stub.replies.extend([Reply(status=status, body=refusal)] * times)
    stub.default = Reply("The keeper counts them every spring [1].")
    refused = "The model took no pictures. Pages not seen: 2 (geese.pdf)."
    for requests, notes in ((times + 1, [refused, UNREAD]), (times + 2, [UNREAD])):
        answer = ask(client, QUESTION)
        assert (answer["status"], answer["notes"], len(stub.requests)) == ("completed", notes, requests)
        assert pictures_of(stub.requests[-1].messages[-1]) == []
    page = client.get(f"/conversations/{answer['conversation_id']}", headers=PAGE)
    assert f'href="/turns/{answer["turn_id"]}/sources/1?whole=1&amp;page=2#passage">{UNREAD}</a>' in page.text


@pytest.mark.long
def test_a_refusal_of_pictures_is_forgotten_by_a_test_and_a_changed_setting(
    client: FlaskClient, services: Services, stub: StubModel, document_id: int
) -> None:
    refusal = Reply(status=400, body=b'{"error": {"message": "image input is not supported"}}')
    stub.default = Reply("The keeper counts them every spring [1].")

    def is_seen() -> bool:
        ask(client, QUESTION)
        return bool(pictures_of(stub.requests[-1].messages[-1]))

    for forget in (
        lambda: client.post("/api/model/test"),
        lambda: services.settings.change({"max_page_images": 1}, services.settings.stamp()),
    ):
        stub.replies.append(refusal)
        assert [is_seen(), is_seen()] == [False, False]
        forget()
        assert is_seen()


def test_a_figure_is_named_where_it_may_matter(
    client: FlaskClient, services: Services, stub: StubModel, document_id: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    changed = services.settings.current.model_copy(update={"max_page_images": 0})
    monkeypatch.setattr(type(services.settings), "current", property(lambda self: changed))
    for question, reply, is_told in (
        (QUESTION, "Every spring [1].", True),
        ("What does figure 1 show?", "Counts [1].", True),
        ("What does figure 3 show?", "Counts [1].", False),
        ("What does paragraph 1 say?", "Counts [1].", False),
        (QUESTION, "I do not know.", False),
        ("What does figure 1 show?", "I do not know.", True),
        ("Was zeigt das Diagramm der geese?", "Nicht gefunden.", True),
        ("图表显示了什么", "没有找到。", True),
        ("What does figure 3 show?", "Not found.", False),
        ("What are the sales figures of the lighthouse?", "Not found.", False),
        ("灯塔图书馆几点开门", "没有找到。", False),
        ("Who is the keeper of the lighthouse?", "Not found.", False),
        ("Who is the keeper of the lighthouse?", "The keeper [1].", False),
    ):
        stub.default = Reply(reply)
        assert (UNREAD in ask(client, question)["notes"]) is is_told, (question, reply)
        assert pictures_of(stub.requests[-1].messages[-1]) == []


@pytest.mark.long
@no_model
@pytest.mark.parametrize(
    ("question", "is_told"),
    [
        ("What share of the geese is at the lighthouse?", True),
        ("How did the keeper count develop in 2022?", True),
        ("Who is the keeper?", False),
        ("Who steals bread?", False),
    ],
)
def test_beside_a_quote_a_word_of_its_caption_is_enough(
    client: FlaskClient, document_id: int, question: str, is_told: bool
) -> None:
    answer = ask(client, question)
    assert answer["model"] == "quotes"
    assert (UNREAD in answer["notes"]) is is_told, answer["answer"]


@pytest.mark.parametrize(
    ("question", "quote", "expected"),
    [
        ("Who counts?", "> Figure 1: Geese counted at the lighthouse in each year [1]", True),
        ("Who counts?", "> The counts are in figure 1 [1].", True),
        ("Which count is the largest?", "> The keeper counts [1].", True),
        ("Wie hat sich die Zahl entwickelt?", "> The keeper counts [1].", True),
        ("Who counts?", "> The keeper counts [1].", False),
        ("What does figure 3 show?", "> The counts are in figure 1 [1].", False),
    ],
)
def test_what_a_quote_or_a_question_says_tells_whether_a_figure_matters(
    question: str, quote: str, expected: bool
) -> None:
    passage = f"{TEXT}\nFigure 1: Geese seen at the lighthouse in each year"
    assert is_about_figure(question, passage, quote) is expected


@pytest.mark.long
def test_a_figure_beside_what_is_not_cited_is_not_named(
    client: FlaskClient, stub: StubModel, services: Services, document_id: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    changed = services.settings.current.model_copy(update={"max_page_images": 0})
    monkeypatch.setattr(type(services.settings), "current", property(lambda self: changed))
    upload(client, "The keeper counts the geese at the lighthouse every year.", "keeper.txt")
    stub.default = Reply("Not stated.")
    names = [one["document"] for one in ask(client, QUESTION)["sources"]]
    for name, notes in (("geese.pdf", [UNREAD]), ("keeper.txt", [])):
        for question in (QUESTION, "What does figure 1 show of the geese the keeper counts?"):
            stub.default = Reply(f"Every spring [{names.index(name) + 1}].")
            assert ask(client, question)["notes"] == notes


@pytest.mark.long
def test_its_note_opens_the_page_of_the_figure_though_the_cited_sentence_is_on_the_next(
    client: FlaskClient, stub: StubModel
) -> None:
    pdf = chart_pdf("Boats pass.", "The keeper counts the geese.", chart_on=1)
    upload(client, pdf, "report.pdf")
    stub.default = Reply("The keeper counts the geese [1].")
    stub.replies.extend([Reply(status=400, body=b'{"error": {"message": "image input is not supported"}}')])
    answer = ask(client, "What does figure 1 show about geese the keeper counts?")
    assert answer["notes"][1:] == ["Page 1 of report.pdf has a figure that was not read."]
    page = client.get(f"/turns/{answer['turn_id']}/sources/1?whole=1&page=1", headers=PAGE).text
    assert re.search(r'<img data-picture[^>]*src="/documents/1/pages/1.png', page), page


@pytest.mark.long
def test_a_page_that_cannot_be_drawn_in_time_is_left_out(
    client: FlaskClient, stub: StubModel, document_id: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any, timeout_seconds: float, **__: Any) -> bytes:
        raise ExtractionFailed(f"It took more than {timeout_seconds} seconds.")

    monkeypatch.setattr(page_images, "draw_page", fail)
    stub.default = Reply("Every spring [1].")
    assert ask(client, QUESTION)["notes"] == [UNREAD]
