"""What the pages list, name and number is what the code has."""

import re
import tomllib
from collections.abc import Iterator
from fnmatch import fnmatch
from pathlib import Path
from typing import Any, get_args, get_type_hints

import pytest
from flask import Flask
from werkzeug.exceptions import HTTPException

from rag_assistant.cli.api import EXIT_CODES, NOT_REACHED
from rag_assistant.history.receipt import TRIMMING, LeftOutReason
from rag_assistant.records import Event, HistoryFigures
from rag_assistant.services import Services
from rag_assistant.settings.schema import Settings
from rag_assistant.web import create_app
from rag_assistant.web.errors import STATUS
from rag_assistant.web.openapi.document import openapi_document
from tests.test_documentation import ENV_EXAMPLE, PROJECT, first_cells
from tests.test_examples import BLOCK, PAGES, blocks, inline

DOCS = PROJECT / "docs"
TEXT = {page.relative_to(PROJECT).as_posix(): page.read_text() for page in PAGES}
# What other programs read, and placeholders.
FOREIGN_VARIABLES = frozenset(
    "AWS_ACCESS_KEY_ID AWS_SECRET_ACCESS_KEY AWS_REGION AWS_PROFILE SSL_CERT_FILE XDG_DATA_HOME OLLAMA_CONTEXT_LENGTH "
    "POSTGRES_PASSWORD S3_SECRET ASSISTANT_HOST TURN_ID TENANT_ID "
    "RAG_ASSISTANT_SERVER RAG_ASSISTANT_TOKEN _RAG_ASSISTANT_COMPLETE OPENAI_API_BASE_URL ENABLE_OLLAMA_API "
    "TASK_MODEL_EXTERNAL ENABLE_TITLE_GENERATION ENABLE_TAGS_GENERATION ENABLE_FOLLOW_UP_GENERATION OFFLINE_MODE "
    "RAG_EMBEDDING_ENGINE RAG_EMBEDDING_MODEL RAG_OPENAI_API_KEY RAG_OPENAI_API_BASE_URL ANTHROPIC_BASE_URL "
    "ANTHROPIC_AUTH_TOKEN ANTHROPIC_MODEL".split()
)

# What other servers have, and what ours have something below.
ELSEWHERE = ("/v1/completions", "/api/ps", "/api/show", "/api/v0/models", "/api", "/api/", "/v1", "/v1/")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data folder in which a server has run."""
    return tmp_path_factory.mktemp("data")


@pytest.fixture(scope="module")
def app(folder: Path) -> Iterator[Flask]:
    made = create_app({"DATA_DIR": str(folder), "SETTINGS_FILE": str(folder / "settings.json")})
    services: Services = made.extensions["assistant"]
    services.start()
    yield made
    services.close()


def names_in(schema: Any) -> Iterator[str]:
    """Yield the fields, parameters and fixed values in a description of the API."""
    if isinstance(schema, list):
        for one in schema:
            yield from names_in(one)
    if isinstance(schema, dict):
        yield from schema.get("properties", ())
        yield from map(str, [schema.get("name"), schema.get("const"), *schema.get("enum", ())])
        for one in schema.values():
            yield from names_in(one)


def test_every_field_in_a_table_of_the_api_page_is_in_its_description(app: Flask) -> None:
    known = {*names_in(openapi_document(app)), *Settings.model_fields, *get_args(LeftOutReason), "endpoint_limit"}
    sections = re.split(r"^(?=## )", TEXT["docs/api.md"], flags=re.MULTILINE)
    # Of OpenAI's protocol, the fields are OpenAI's; events have a test of their own.
    ours = [one for one in sections if not one.startswith(("## Stream", "## OpenAI's", "## Command line"))]
    rows = "\n".join(re.findall(r"^\|.*", "\n".join(ours), re.MULTILINE))
    named = set(re.findall(r"(?<!\[)`([a-z]+(?:_[a-z]+)*)`", rows))
    assert len(named) > 50
    assert named - known - {"true", "false", "null", "length"} == set()


def test_the_figures_of_the_history_on_the_api_page_exist() -> None:
    _, table, *_ = TEXT["docs/api.md"].partition("The figures in `history`:")[2].split("\n\n")
    named = {
        name for cell in re.findall(r"^\| ([^|]+) \|", table, re.MULTILINE) for name in re.findall(r"`(\w+)`", cell)
    }
    assert len(named) > 10
    named |= {name for text in TEXT.values() for name in re.findall(r"`history\.(\w+)", text)}
    assert named - get_type_hints(HistoryFigures).keys() == set()


def test_the_events_of_a_stream_are_those_of_the_page() -> None:
    assert set(first_cells(DOCS / "api.md", "## Stream an answer")) == set(get_args(get_type_hints(Event)["name"]))


def test_every_address_on_a_page_is_a_route(app: Flask) -> None:
    urls = app.url_map.bind("localhost")
    named = {
        (method or None, path)
        for code in inline()
        for method, path in re.findall(r"^(?:([A-Z]+) )?(/(?:api|v1|mcp|docs|healthz|readyz|metrics)[\w/-]*)", code)
    }
    assert len(named) > 100
    for method, path in named - {(None, one) for one in ELSEWHERE}:
        address = path.replace("/ID", "/1")
        methods = urls.allowed_methods(address) if method is None else [method]
        assert any(urls.test(address, one) for one in methods), path


def test_every_variable_on_a_page_is_read() -> None:
    ours = set(re.findall(r"^#([A-Z0-9_]+)=", ENV_EXAMPLE.read_text(), re.MULTILINE))
    code = [*inline(), *blocks("")]
    named = {name for one in code for name in re.findall(r"\b_?[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+\b", one)}
    assert "DATA_DIR" in named
    assert named - ours - FOREIGN_VARIABLES == set()


def test_every_default_that_a_page_names_is_that_of_the_setting() -> None:
    named = [match for text in TEXT.values() for match in re.findall(r"`(\w+)`(?: \w+)? \((\d[\d,.]*)", text)]
    named = [(name, number) for name, number in named if name in Settings.model_fields]
    assert len(named) > 1
    for name, number in named:
        assert float(number.replace(",", "").rstrip(".")) == Settings.model_fields[name].default, name


def test_every_number_of_a_schema_is_that_of_the_first() -> None:
    first = min((PROJECT / "migrations" / "versions").glob("*.py")).name[:4]
    assert {number for text in TEXT.values() for number in re.findall(r"\b00\d\d\b", BLOCK.sub("", text))} == {first}


def test_a_new_data_folder_has_nothing_else(app: Flask, folder: Path) -> None:
    listed = [name.rstrip("/") for name in first_cells(DOCS / "operating.md", "## What is where")]
    assert app.test_client().get("/api/documents").status_code == 200
    made = [path.name for path in folder.iterdir()]
    assert "assistant.db" in made
    assert [name for name in made if not any(fnmatch(name, one) for one in listed)] == []


def test_the_parts_of_readyz_are_those_of_the_page(app: Flask) -> None:
    monitoring = TEXT["docs/operating.md"].partition("## Monitoring")[2].partition("\n### ")[0]
    parts = app.test_client().get("/readyz").get_json()["parts"]
    assert set(re.findall(r"^\| `(\w+)` \|", monitoring, re.MULTILINE)) == parts.keys() - {"embedder"}


def test_the_exit_codes_are_those_of_the_commands() -> None:
    listed = dict(re.findall(r"^\| (\d+) \| (.*) \|$", TEXT["docs/accounts.md"], re.MULTILINE))
    assert {int(code) for code in listed} == {0, 1, 2, NOT_REACHED, *EXIT_CODES.values()}
    for status, code in EXIT_CODES.items():
        assert str(status) in listed[str(code)]


def test_the_statuses_are_those_of_the_errors() -> None:
    cells = re.findall(r"^\| ((?:\d{3}(?:, )?)+) \|", TEXT["docs/api.md"], re.MULTILINE)
    listed = {int(status) for cell in cells for status in cell.split(", ")}
    of_http = {405, 431}  # Raised by Flask, and answered by the server before it.
    assert listed == {*STATUS.values(), *of_http}
    assert 405 in {kind.code for kind in HTTPException.__subclasses__()}


def test_the_reasons_are_those_of_the_receipt() -> None:
    rows = re.findall(r"^\| ((?:`\w+`(?:, )?)+) \| [^|]+ \| (\w+)[^|]* \|$", TEXT["docs/history.md"], re.MULTILINE)
    listed = {reason: trims for cell, trims in rows for reason in re.findall(r"`(\w+)`", cell)}
    assert listed.keys() == set(get_args(LeftOutReason))
    assert {reason for reason, trims in listed.items() if trims == "yes"} == TRIMMING


@pytest.mark.long
def test_the_size_of_an_extra_is_the_one_beside_it() -> None:
    extras = (PROJECT / "pyproject.toml").read_text().split("[project.optional-dependencies]")[1].split("\n[")[0]
    told = dict(re.findall(r"^\| `([a-z0-9-]+)` \| ([\d.]+ MB) \|", TEXT["docs/running.md"], re.MULTILINE))
    names = tomllib.loads((PROJECT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    assert told.keys() == names.keys()
    before = {name: re.split(rf"^{name} = \[", extras, flags=re.MULTILINE) for name in names}
    for name, (above, below) in before.items():
        beside = above.rpartition("\n]\n")[2] + below.partition("\n]")[0]
        assert told[name] in beside, name


@pytest.mark.long
def test_the_size_of_an_installation_is_one_number() -> None:
    written = [TEXT["README.md"], TEXT["docs/running.md"], (PROJECT / "deploy" / "unused-packages.txt").read_text()]
    assert all("760 MB" in text or "of 760" in text for text in written)
