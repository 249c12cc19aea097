"""Projects as models, which any client of OpenAI's protocol can choose."""

from typing import Any

import openai
import pytest
from flask.testing import FlaskClient

from tests.testkit.stub_model import StubModel
from tests.web.api.test_projects import make, system_of
from tests.web.conftest import upload


def test_any_client_of_openai_chooses_a_project_as_its_model(
    sdk: openai.OpenAI, client: FlaskClient, stub: StubModel
) -> None:
    upload(client, "The lamp burns rapeseed oil.", "lamp.txt")
    boats = upload(client, "The lamp of the boat burns tallow.", "boat.txt")["document_id"]
    project = make(client, name="My harbour", document_ids=[boats])["project_id"]
    model = "rag-assistant/My harbour"
    assert model in [one.id for one in sdk.models.list()]
    assert sdk.models.retrieve(model).id == model
    talk: Any = [{"role": "user", "content": "Hello?"}, {"role": "assistant", "content": "Hello."}] * 2
    talk = [{"role": "system", "content": "Be brief."}, *talk, {"role": "user", "content": "What does the lamp burn?"}]
    answer = sdk.chat.completions.create(model=model, messages=talk)
    assert answer.model == model
    assert system_of(stub).endswith("Speak of boats.\n\nBe brief.")
    told = answer.model_dump()["rag_assistant"]
    assert {source["document"] for source in told["sources"]} == {"boat.txt"}
    assert told["history"]["turns_kept"] == 1
    assert client.get("/api/conversations").json["conversations"] == []
    stored = sdk.responses.create(model=model, input="What does the lamp burn?")
    kept = client.get("/api/conversations").json["conversations"]
    assert [one["project_id"] for one in kept] == [project]
    assert sdk.responses.retrieve(stored.id).model == model
    with pytest.raises(openai.NotFoundError, match="There is no model .*rag-assistant/My harbour"):
        sdk.chat.completions.create(model="rag-assistant/Port", messages=talk)
