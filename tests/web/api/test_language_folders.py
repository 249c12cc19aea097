"""Folders in other languages, without a model: each question is answered with the right sentence of its document.

By the API, and so on the page.
"""

import html
import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from flask.testing import FlaskClient

from rag_assistant.retrieval.embeddings import minilm
from rag_assistant.retrieval.embeddings.minilm import MiniLM
from rag_assistant.services import GUIDE, Services
from rag_assistant.web import create_app
from tests.web.conftest import PAGE, ask, until, upload

FOLDERS = Path(__file__).parents[1] / "folders"


@pytest.fixture(params=[False, pytest.param(True, marks=pytest.mark.long)], ids=["alone", "with the guide"])
def client(
    request: pytest.FixtureRequest,
    environment: dict[str, str],
    embedders: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[FlaskClient]:
    """An assistant without a model, with the embedding model that the product has."""
    if request.param:
        monkeypatch.setattr("rag_assistant.services.GUIDE", GUIDE)
    shutil.copytree(embedders, tmp_path / "data" / "embedders", dirs_exist_ok=True)
    monkeypatch.setattr(minilm, "MiniLM", MiniLM)
    made = create_app({name: value for name, value in environment.items() if not name.startswith("OPENAI")})
    services: Services = made.extensions["assistant"]
    services.start()
    until(lambda: not services.processing.busy)
    yield made.test_client()
    services.close()


@pytest.mark.long
@pytest.mark.parametrize(
    ("language", "every"),
    [("hindi", 4), *(pytest.param(one, 1, marks=pytest.mark.long) for one in ("german", "hindi", "chinese"))],
)
def test_a_folder_of_ten_documents_answers_ten_questions(client: FlaskClient, language: str, every: int) -> None:
    folder = json.loads((FOLDERS / f"{language}.json").read_text(encoding="utf-8"))
    for name, text in folder["documents"].items():
        upload(client, text, name)
    wrong = []
    for question, (fact, document) in [*folder["questions"].items()][::every]:
        answer = ask(client, question)
        cited = [source["document"] for source in answer["sources"] if source["cited"]]
        shown = html.unescape(client.get(f"/conversations/{answer['conversation_id']}", headers=PAGE).text)
        if fact not in answer["answer"] or fact not in shown or document not in shown or document not in cited[:1]:
            wrong.append((question, answer["answer"], cited))
    assert (len(folder["documents"]), len(folder["questions"]), wrong) == (10, 10, [])
