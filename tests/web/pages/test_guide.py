"""The guide is apart: it answers questions about the assistant, and is none of a person's documents."""

from pathlib import Path

import pytest
from flask.testing import FlaskClient

from rag_assistant.services import Services
from rag_assistant.settings.package_files import GUIDE
from tests.web.conftest import post, upload
from tests.web.pages.document_rows import names_on


@pytest.fixture
def guide(services: Services, tmp_path: Path) -> None:
    """A library that has one page of the guide."""
    services.guide = tmp_path / "guide"
    services.guide.mkdir()
    page = GUIDE / "1-first-steps.md"
    (services.guide / page.name).write_text(page.read_text())
    services.start()
    services.add_guide()


@pytest.mark.usefixtures("guide")
def test_the_guide_is_not_listed_counted_or_offered(client: FlaskClient, services: Services) -> None:
    upload(client, "Seventeen geese.", "geese.txt")
    services.projects.add("Harbour")
    page = client.get("/documents").text
    assert names_on(page) == ["geese.txt"]
    assert "1 document, " in page
    assert [one.documents for one in services.libraries.all()] == [1]
    project = client.get("/projects/1").text
    assert "geese.txt" in project
    assert "1-first-steps" not in project + page + client.get("/").text


@pytest.mark.long
@pytest.mark.usefixtures("guide")
def test_the_guide_has_a_switch_of_its_own(client: FlaskClient, services: Services) -> None:
    assert "Switch off" in client.get("/documents").text
    assert post(client, "/documents/guide") == (303, "/documents")
    assert services.documents.guide() == []
    assert "Switch on" in client.get("/documents").text
    post(client, "/documents/guide")
    assert len(services.documents.guide()) == 1


@pytest.mark.usefixtures("guide")
def test_a_file_with_the_name_of_a_page_of_the_guide_is_a_persons_own(client: FlaskClient) -> None:
    upload(client, "Geese float.", "3-documents.md")
    assert names_on(client.get("/documents").text) == ["3-documents.md"]
    post(client, "/documents/guide")
    assert [one["name"] for one in client.get("/api/documents").json["documents"]] == ["3-documents.md"]


@pytest.mark.usefixtures("guide")
def test_a_persons_file_of_that_name_is_found_as_the_nearest(client: FlaskClient) -> None:
    upload(client, "Geese float on the lake at dawn.", "3-documents.md")
    found = client.get("/api/search?q=What is the capital of Portugal?").json
    assert [one["document"] for one in found["passages"]] == ["3-documents.md"]
