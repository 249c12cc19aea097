"""Pictures in questions: sent, kept once, in the receipt, counted, left out with their turn, and refused in words."""

import base64
from typing import Any

import pytest
from flask.testing import FlaskClient
from sqlalchemy import func, select

from rag_assistant.history import TOKENS_PER_ATTACHMENT
from rag_assistant.services import Services
from rag_assistant.storage.tables import pictures
from tests.testkit.stub_model import StubModel
from tests.web.conftest import ask

PNG_BYTES = b"\x89PNG\r\n\x1a\n" + bytes(range(256))


def data_url(content: bytes = PNG_BYTES, kind: str = "png") -> str:
    return f"data:image/{kind};base64,{base64.b64encode(content).decode()}"


PICTURE, OTHER = data_url(), data_url(b"\xff\xd8\xff" + bytes(100), "jpeg")


pytestmark = pytest.mark.settings(MODEL_IMAGES="true")


def parts(text: str, *pictures: str) -> list[dict[str, Any]]:
    return [{"type": "text", "text": text}, *({"type": "image_url", "image_url": {"url": url}} for url in pictures)]


def pictures_kept(services: Services) -> int:
    with services.database.read() as connection:
        return int(connection.execute(select(func.count()).select_from(pictures)).scalar_one())


def test_a_picture_is_sent_kept_once_and_shown(client: FlaskClient, services: Services, stub: StubModel) -> None:
    first = ask(client, "What is this?", images=[PICTURE, OTHER])
    assert first["images"] == 2
    assert stub.requests[-1].messages[-1] == {"role": "user", "content": parts("What is this?", PICTURE, OTHER)}
    ask(client, "And this?", images=[PICTURE], conversation_id=first["conversation_id"])
    said = [message["content"] for message in stub.requests[-1].messages if message["role"] == "user"]
    assert said == [parts("What is this?", PICTURE, OTHER), parts("And this?", PICTURE)]
    assert pictures_kept(services) == 3, "once for each question, not for each request"
    shown = client.get(f"/api/turns/{first['turn_id']}/images/1")
    assert (shown.data, shown.headers["Content-Type"]) == (PNG_BYTES, "image/png")
    assert "sandbox" in shown.headers["Content-Security-Policy"]
    assert client.get(f"/api/turns/{first['turn_id']}/images/3").status_code == 404


def test_the_receipt_has_what_was_sent_byte_for_byte(client: FlaskClient, stub: StubModel) -> None:
    first = ask(client, "What is this?", images=[PICTURE])
    second = ask(client, "And now?", conversation_id=first["conversation_id"])
    for turn, request in zip((first, second), stub.requests, strict=True):
        sent = client.get(f"/api/turns/{turn['turn_id']}/receipt").json["messages"]
        assert sent == request.messages
    page = client.get(f"/turns/{first['turn_id']}/receipt", headers={"Accept": "text/html"}).text
    assert "1 picture" in page
    assert f'src="/api/turns/{first["turn_id"]}/images/1"' in page


def test_its_tokens_are_counted_and_it_leaves_with_its_turn(client: FlaskClient, stub: StubModel) -> None:
    plain = ask(client, "What is this?")["history"]["tokens"]
    first = ask(client, "What is this?", images=[PICTURE])
    tokens = first["history"]["tokens"]
    assert tokens["question"] - plain["question"] == TOKENS_PER_ATTACHMENT
    assert tokens["passages"] == plain["passages"], "a picture is no passage"
    own = {"conversation_id": first["conversation_id"]}
    second = ask(client, "And now?", **own)
    assert second["history"]["tokens"]["history"] > TOKENS_PER_ATTACHMENT
    third = ask(client, "Why?", max_history_turns=1, **own)
    assert third["history_trimmed"] is True
    assert third["history"]["tokens"]["history"] < TOKENS_PER_ATTACHMENT
    assert "data:image" not in str(stub.requests[-1].messages)


def test_an_answer_is_regenerated_with_its_pictures(client: FlaskClient, stub: StubModel) -> None:
    first = ask(client, "What is this?", images=[PICTURE])
    client.post(f"/api/turns/{first['turn_id']}/regenerate")
    client.get(f"/api/turns/{first['turn_id']}/stream").get_data()
    assert stub.requests[-1].messages[-1]["content"] == parts("What is this?", PICTURE)


def test_a_branch_has_the_pictures_and_erasing_takes_them(client: FlaskClient, services: Services) -> None:
    first = ask(client, "What is this?", images=[PICTURE])
    second = ask(client, "And now?", conversation_id=first["conversation_id"])
    branch = ask(client, "And then?", edits_turn=second["turn_id"])
    turns = client.get(f"/api/conversations/{branch['conversation_id']}/turns").json["turns"]
    assert client.get(f"/api/turns/{turns[0]['turn_id']}/images/1").data == PNG_BYTES
    assert pictures_kept(services) == 2, "one in each conversation"
    assert client.delete(f"/api/turns/{first['turn_id']}?permanently=1").status_code in (200, 204)
    assert pictures_kept(services) == 0


def test_an_export_brings_them_along(client: FlaskClient, services: Services) -> None:
    first = ask(client, "What is this?", images=[PICTURE])
    whole = services.exchange.read(first["conversation_id"])
    assert whole.turns[0].images == (PICTURE,)
    made = services.exchange.insert(whole)
    assert services.exchange.read(made).turns[0].images == (PICTURE,)


def test_a_model_that_takes_none_any_more_is_told_that_there_were_some(
    client: FlaskClient, services: Services, stub: StubModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = ask(client, "What is this?", images=[PICTURE])
    without = services.settings.current.model_copy(update={"model_images": False})
    monkeypatch.setattr(type(services.settings), "current", property(lambda self: without))
    ask(client, "And now?", conversation_id=first["conversation_id"])
    said = [message["content"] for message in stub.requests[-1].messages if message["role"] == "user"]
    assert said == ["What is this?\n[1 picture not sent]", "And now?"]
    refused = client.post("/api/query", json={"question": "What is this?", "images": [PICTURE]})
    assert (refused.status_code, refused.json["error"]["type"]) == (422, "InvalidRequest")
    assert 'set "model_images" to true' in refused.json["error"]["message"]
    chat = {"model": "rag-assistant", "messages": [{"role": "user", "content": parts("What?", PICTURE)}]}
    refused = client.post("/v1/chat/completions", json=chat)
    assert (refused.status_code, "model_images" in refused.json["error"]["message"]) == (400, True)


def test_what_is_no_picture_is_refused(client: FlaskClient, stub: StubModel) -> None:
    cases: list[tuple[Any, str]] = [
        (["https://example.org/a.png"], "must be a data URL of PNG, JPEG or WebP"),
        (["data:image/svg+xml;base64,PHN2Zz4="], "must be a data URL of PNG, JPEG or WebP"),
        (["data:image/png;base64,AAA"], "is not base64"),
        ([data_url(b"GIF89a", "png")], "claims to be image/png, but it is not"),
        ([data_url(b"RIFF\0\0\0\0WAVE", "webp")], "claims to be image/webp, but it is not"),
        ([data_url(PNG_BYTES + bytes(5_000_000))], "has 5.0 MB; the limit is 5 MB"),
        ([PICTURE] * 5, "a list of up to 4 pictures"),
        ("no list", "a list of up to 4 pictures"),
    ]
    for images, says in cases:
        response = client.post("/api/query", json={"question": "What is this?", "images": images})
        assert (response.status_code, says in response.json["error"]["message"]) == (422, True), says
    assert stub.requests == []


def test_a_chat_in_openais_protocol_has_pictures(client: FlaskClient, stub: StubModel) -> None:
    messages: list[dict[str, Any]] = [
        {"role": "user", "content": parts("What is this?", PICTURE)},
        {"role": "assistant", "content": "A goose."},
        {"role": "user", "content": parts("And this?", OTHER)},
    ]
    answer = client.post("/v1/chat/completions", json={"model": "rag-assistant", "messages": messages})
    assert answer.status_code == 200, answer.text
    assert stub.requests[-1].messages[1:] == messages
    item = {"role": "user", "content": [{"type": "input_text", "text": "What?"}]}
    item["content"].append({"type": "input_image", "image_url": PICTURE, "detail": "auto"})
    assert client.post("/v1/responses", json={"model": "rag-assistant", "input": [item]}).status_code == 200
    assert stub.requests[-1].messages[-1]["content"] == parts("What?", PICTURE)
    kind, _, data = PICTURE.removeprefix("data:").partition(";base64,")
    block = {"type": "image", "source": {"type": "base64", "media_type": kind, "data": data}}
    sent = [{"role": "user", "content": [{"type": "text", "text": "What?"}, block]}]
    assert client.post("/v1/messages", json={"model": "rag-assistant", "messages": sent}).status_code == 200
    assert stub.requests[-1].messages[-1]["content"] == parts("What?", PICTURE)


def test_no_address_is_fetched_for_a_chat(client: FlaskClient, stub: StubModel) -> None:
    for role, url in (("user", "https://example.org/a.png"), ("user", "file:///etc/passwd"), ("assistant", PICTURE)):
        messages = [{"role": role, "content": parts("What?", url)}, {"role": "user", "content": "Well?"}]
        refused = client.post("/v1/chat/completions", json={"model": "rag-assistant", "messages": messages})
        assert (refused.status_code, stub.requests) == (400, []), url
        assert refused.json["error"]["param"].startswith("messages[0].content")
