"""The description of the API: of every route, from what checks its body, and true of what really comes."""

import inspect
import io
import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, get_args

import pytest
from flask import Flask
from flask.testing import FlaskClient
from jsonschema import Draft202012Validator

from rag_assistant.conversations.exchange.export import FORMATS
from rag_assistant.history import HistoryStrategy
from rag_assistant.records import DOCUMENT_STATES
from rag_assistant.runtime.public_http import Fetched, PublicHttp
from rag_assistant.services import Services
from rag_assistant.web.openapi.document import (
    EXAMPLES,
    HEADERS,
    ID,
    QUERY,
    api_routes,
    openapi_document,
    path_of,
    reference_to,
)
from rag_assistant.web.request_parsing import MAX_KEY_CHARS
from rag_assistant.web.routing import Operation, routes_of
from rag_assistant.web.schemas import EVENTS
from tests.testkit.stub_model import Reply, StubModel
from tests.web.conftest import ask, events_of, until, upload

GOLDEN = Path(__file__).resolve().parents[2] / "golden" / "expected"
BODY_READ = re.compile(r"read_(?:optional_)?(?:body|openai)\((?:\w+\.)?(\w+)\)")


@pytest.fixture(scope="module")
def document(empty_app: Flask) -> dict[str, Any]:
    with empty_app.app_context():
        return openapi_document(empty_app)


def problems(document: dict[str, Any], schema: dict[str, Any], value: Any) -> list[str]:
    """Return where a value is not as a schema of the document has it."""
    whole = {"components": document["components"], "$ref": schema["$ref"]} if "$ref" in schema else schema
    return [f"{error.json_path}: {error.message[:200]}" for error in Draft202012Validator(whole).iter_errors(value)]


def answer_schema(document: dict[str, Any], path: str, method: str, status: int) -> dict[str, Any]:
    """Return the schema of the JSON that an operation answers with."""
    responses = document["paths"][path][method.lower()]["responses"]
    described = str(status) if str(status) in responses else f"{status // 100}XX"
    assert described in responses, f"{method} {path} answered with {status}"
    schema: dict[str, Any] = responses[described]["content"]["application/json"]["schema"]
    return schema


def test_every_route_is_described_and_nothing_else(empty_app: Flask) -> None:
    described = {route.endpoint for route in routes_of(empty_app) if route.operation != Operation()}
    assert described == {route.endpoint for route, _ in api_routes(empty_app)}


def test_every_view_reads_the_body_that_is_described(empty_app: Flask) -> None:
    for route, _ in api_routes(empty_app):
        operation = route.operation
        read = set(BODY_READ.findall(inspect.getsource(empty_app.view_functions[route.endpoint])))
        described = {operation.body.__name__} if operation.body is not None and not operation.form else set()
        assert read == described, route.endpoint


@pytest.mark.long
def test_the_schemas_are_schemas_and_every_reference_leads_somewhere(document: dict[str, Any]) -> None:
    schemas = document["components"]["schemas"]
    for schema in schemas.values():
        Draft202012Validator.check_schema(schema)
    named = set(re.findall(r'"#/components/schemas/(\w+)"', json.dumps(document)))
    assert named <= set(schemas)
    operations = [one["operationId"] for path in document["paths"].values() for one in path.values()]
    assert len(operations) == len(set(operations))


def golden_answers() -> list[tuple[str, str, int, Any]]:
    found = []
    for file in sorted(GOLDEN.glob("*.json")):
        for step in json.loads(file.read_text()):
            method, _, address = step["request"].partition(" ")
            if step["type"] == "application/json" and address.startswith("/api/"):
                found.append((method, address.partition("?")[0], step["status"], step["answer"]))
    return found


def test_the_choices_and_limits_in_the_data_are_those_of_the_code() -> None:
    choices = {"state": DOCUMENT_STATES, "format": FORMATS, "strategy": get_args(HistoryStrategy)}
    assert {name: QUERY[name]["schema"]["enum"] for name in choices} == {k: list(v) for k, v in choices.items()}
    assert QUERY["project_id"]["schema"] == QUERY["document_id"]["schema"]["items"] == ID
    assert HEADERS["Idempotency-Key"]["schema"]["maxLength"] == MAX_KEY_CHARS


def test_the_numbers_that_are_refused_are_not_allowed(empty: FlaskClient, document: dict[str, Any]) -> None:
    parameters = document["paths"]["/api/documents"]["get"]["parameters"]
    limit = next(one["schema"] for one in parameters if one["name"] == "limit")
    form = document["paths"]["/api/documents"]["post"]["requestBody"]["content"]["multipart/form-data"]["schema"]
    for number in (0, 201):
        assert not Draft202012Validator(limit).is_valid(number)
        assert empty.get(f"/api/documents?limit={number}").status_code == 422
    for name in ("library_id", "replaces"):
        assert not Draft202012Validator(form["properties"][name]).is_valid([1, 1])
        sent = {"file": (io.BytesIO(b"Geese."), "geese.txt"), name: ["1", "1"]}
        refused = empty.post("/api/documents", data=sent)
        assert (refused.status_code, f"{name} is [1, 1]" in refused.json["error"]["message"]) == (422, True)


def test_every_refusal_is_as_described(empty_app: Flask, empty: FlaskClient, document: dict[str, Any]) -> None:
    wrong, statuses = [], set()
    for rule, method in api_routes(empty_app):
        address = re.sub("<[^>]*>", "1", rule.rule)
        refused = empty.open(f"{address}?geese=1", method=method, json={"geese": 1})
        if refused.status_code >= 400 and refused.is_json:
            statuses.add(refused.status_code)
            schema = answer_schema(document, path_of(rule), method, refused.status_code)
            wrong += [f"{method} {address}: {one}" for one in problems(document, schema, refused.json)]
    assert wrong == []
    assert statuses >= {400, 422}


def test_lists_are_described_as_makers_of_clients_read_them(document: dict[str, Any]) -> None:
    assert re.findall(r'"(?:prefixItems|items": (?:false|true))', json.dumps(document)) == []


@pytest.mark.long
def test_what_was_recorded_is_as_described(empty_app: Flask, document: dict[str, Any]) -> None:
    adapter = empty_app.url_map.bind("localhost")
    wrong = []
    for method, address, status, answer in golden_answers():
        if not adapter.test(address, method) or status == 405:
            continue
        rule, _ = adapter.match(address, method, return_rule=True)
        # Of what changes from run to run only the name was recorded.
        answer = json.loads(json.dumps(answer).replace('"<seconds>"', "0.5"))
        schema = answer_schema(document, path_of(rule), method, status)
        error = {"$ref": "#/components/schemas/TurnAnswer"} if status >= 500 and "turn_id" in answer else schema
        wrong += [f"{method} {address}: {one}" for one in problems(document, error, answer)]
    assert wrong == []


# Where examples need something of their own: what is asked about, in what order.
IDS = {"version": "1", "name": "rag-assistant", "response_id": "resp_1"}
QUERIES = {
    "conversations_api.conversations": "limit=2",
    "conversations_api.turns": "limit=2",
    "conversations_api.export": "format=markdown",
    "conversations_api.preview": "max_history_turns=1",
    "documents_api.documents": "state=ready",
    "sharing_api.shared": "link=secret",
    "api.erase_turn": "permanently=1",
    "api.search": "q=large+document&limit=3",
}
LAST = (
    "delete_response",
    "erase_turn",
    "delete_conversation",
    "restore_conversation",
    "purge_conversation",
    "delete",
    "erase",
)


def in_order(app: Flask) -> Iterator[tuple[Any, str]]:
    """Yield the routes so that nothing is gone before it was asked for."""
    routes = api_routes(app)
    late = {name: n for n, name in enumerate(LAST, 1)}
    yield from sorted(routes, key=lambda one: late.get(one[0].endpoint.partition(".")[2], 0))


def test_every_example_runs_and_its_answer_is_as_described(
    app: Flask, client: FlaskClient, stub: StubModel, document: dict[str, Any]
) -> None:
    long = " It was told at some length, so that a summary can be shorter than what it stands for." * 3
    stub.default = Reply("50 MB [1].", usage={"prompt_tokens": 9, "completion_tokens": 3})
    upload(client, "A document may be up to 50 MB large.", "limits.txt")
    first = ask(client, f"How large may a document be?{long}")["conversation_id"]
    for n in range(6):
        ask(client, f"And {n}?{long}", conversation_id=first)
    seen = set()
    for rule, method in in_order(app):
        operation = rule.operation
        address = re.sub(r"<(?:\w+:)?(\w+)>", lambda found: IDS.get(found[1], "1"), rule.rule)
        fields: dict[str, Any] = {}
        name = rule.endpoint.partition(".")[2]
        if name == "regenerate":
            address = address.replace("/1/", "/7/")
        if operation.form:
            upload(client, "Another.", "another.txt", **EXAMPLES[rule.endpoint])
            continue
        if operation.body is not None or operation.file:
            fields["json"] = EXAMPLES[rule.endpoint]
        prepare(client, stub, rule.endpoint)
        response = client.open(address, method=method, query_string=QUERIES.get(rule.endpoint), buffered=True, **fields)
        expected = {"retry": 409} if rule.endpoint == "api.retry" else {}
        needs_account = rule.policy.person
        wanted = 403 if needs_account else expected.get(name, operation.status)
        assert response.status_code == wanted, (rule, response.text[:500])
        seen.add(rule.endpoint)
        if response.is_json and response.status_code < 400 and isinstance(operation.answer, type):
            schema = answer_schema(document, path_of(rule), method, operation.status)
            assert problems(document, schema, response.json) == [], rule
        if operation.events and not operation.answer:
            check_events(document, operation.events, response.data)
        if name == "regenerate":
            until(lambda: client.get("/api/turns/7").json["status"] != "running")
    forms = {"documents_api.add", "documents_api.add_archive"}
    assert seen == {route.endpoint for route, _ in api_routes(app)} - forms


def prepare(client: FlaskClient, stub: StubModel, endpoint: str) -> None:
    """Bring about what some examples need."""
    if endpoint in ("conversations_api.bill", "conversations_api.compact", "openai.compact"):
        client.post("/api/conversations/1/reset")
        client.post("/api/conversations/1/undo")
    if endpoint in ("conversations_api.compact", "openai.compact"):
        stub.replies.append(Reply("They spoke of documents."))
    if endpoint == "api.image":
        client.application.extensions["assistant"].history.pictures = lambda turn: ("data:image/png;base64,AAAA",)
    if endpoint in ("documents_api.add_web_page", "documents_api.fetch_again"):
        let_pages_be_fetched(client.application.extensions["assistant"])
    if endpoint == "conversations_api.edit_summary":
        stub.replies.append(Reply("They spoke of documents."))
        client.post("/api/conversations/1/compact")


def let_pages_be_fetched(services: Services) -> None:
    """Switch it on, with a page in the place of the net; the first document is one."""
    values = services.settings.current.model_copy(update={"web_pages": True})
    services.web_pages._settings = lambda: values

    class Pretended(PublicHttp, frozen=True):
        @contextmanager
        def fetch(self, url: str, ports: object, max_mb: int, accept: str) -> Iterator[Fetched]:
            yield Fetched(url, "text/plain", None, io.BytesIO(f"Fetched from {url}.".encode()))

    services.web_pages._http = Pretended()
    services.documents.change(1, origin="https://example.org/limits")


def check_events(document: dict[str, Any], events: Any, body: bytes) -> None:
    for name, _, data in events_of(body):
        assert problems(document, reference_to(events[name]), data) == [], name


def test_the_chunks_of_a_chat_are_as_described(client: FlaskClient, document: dict[str, Any]) -> None:
    body = {"model": "rag-assistant", "messages": [{"role": "user", "content": "Why?"}], "stream": True}
    for line in client.post("/v1/chat/completions", json=body).data.splitlines():
        if line.startswith(b"data: {"):
            chunk = json.loads(line.removeprefix(b"data: "))
            assert problems(document, {"$ref": "#/components/schemas/ChatChunk"}, chunk) == []


@pytest.mark.long
def test_the_events_of_an_agents_answer_are_as_described(
    client: FlaskClient, stub: StubModel, document: dict[str, Any]
) -> None:
    upload(client, "The lamp burns oil.", "lamp.txt")
    stub.replies.append(Reply(tool_calls=[{"id": "a", "name": "search_documents", "arguments": {"query": "lamp"}}]))
    body = {"model": "rag-assistant-tools", "messages": [{"role": "user", "content": "What burns?"}]}
    client.post("/v1/chat/completions", json=body, headers={"X-Conversation-Id": "new"})
    response = client.get("/api/turns/1/stream")
    assert "event: step" in response.text
    check_events(document, EVENTS, response.data)


def test_the_document_and_its_page_are_served(empty: FlaskClient) -> None:
    served = empty.get("/openapi.json").json
    assert served["openapi"] == "3.1.0"
    page = empty.get("/docs")
    assert page.status_code == 200
    for path in served["paths"]:
        assert path in page.text
    assert "<script" not in page.text
    kinds = served["x-error-types"]
    statuses = {one["type"]: one["status"] for one in kinds}
    assert (statuses["ConversationNotFound"], statuses["StorageFailed"]) == (404, 507)
    assert all(one["type"] in page.text and one["meaning"].endswith(".") for one in kinds)


PROBLEM = "application/problem+json"


def test_who_asks_for_problem_details_gets_them(empty: FlaskClient) -> None:
    page = empty.get("/docs").text
    for path in ("/api/turns/9", "/v1/responses/resp_9", "/healthz/nothing", "/api/nothing"):
        plain = empty.get(path, headers={"Accept": "application/json"})
        response = empty.get(path, headers={"Accept": f"{PROBLEM}, application/json"})
        assert response.mimetype == PROBLEM, path
        problem = response.json
        assert (problem["status"], problem["instance"]) == (404, path)
        assert f'id="{problem["code"]}"' in page or problem["code"] == "NotFound", path
        assert problem["detail"] == plain.json["error"]["message"], path
        assert plain.mimetype == "application/json", path


def test_a_failed_answer_is_a_problem_too(client: FlaskClient, stub: StubModel) -> None:
    stub.default = Reply(status=401)
    response = client.post("/api/query", json={"question": "Why?"}, headers={"Accept": PROBLEM})
    assert (response.status_code, response.mimetype) == (502, PROBLEM)
    assert response.json["code"] == "ModelRefused"
    assert response.json["title"] == "Model refused"


def test_the_page_names_the_server_at_the_address_that_was_asked(empty: FlaskClient) -> None:
    for base in ("http://localhost", "http://127.0.0.1:5000"):
        page = empty.get("/docs", base_url=base).text
        assert f"{base}/api/query" in page
        assert "anywhere.invalid" not in page
