"""Every route, every method, every kind of caller, with ids of somebody else: what is not yours does not exist.

The routes come from the application. A route with an id that nobody here knows how to fill fails, and so does one
without a policy.
"""

import re
import time
from collections.abc import Callable, Iterator
from statistics import median

import pytest
from flask import Flask
from werkzeug.test import TestResponse

from rag_assistant.services import Services
from rag_assistant.web.routing import routes_of
from tests.testkit.people import quick_passwords
from tests.testkit.routes import ENDINGS, path_of, routes, send, some_of
from tests.testkit.stub_model import StubModel
from tests.web.conftest import ask, both_engines
from tests.web.named_requests import NAMED
from tests.web.world import CANARY, MISSING, TAG, World, fill, kept_of_owner, of_missing

# What has no id of its own, or one that is only there once something was cited.
LED_BY_A_SECRET = ("source_pages.source", "sharing_pages.shared", "sharing_api.shared")


pytestmark = [pytest.mark.settings(MODEL_IMAGES="true"), both_engines]


@pytest.fixture
def world(app: Flask, services: Services) -> Iterator[World]:
    with quick_passwords():
        yield fill(World(app, services))


# These find only what is in the trash.
IN_TRASH = (
    *("sidebar.erase", "pages.purge_conversation", "conversations_api.purge_conversation"),
    "document_pages.erase_document",
)


def has_foreign_id(rule: str) -> bool:
    return re.search(r"<int:(?!version|n>|number)\w+>|<response_id>", rule) is not None


def seen_by_strangers(response: TestResponse, *ids: int) -> tuple[int, str, str]:
    """Return what an answer says, without the number that was asked for and the words it was asked with.

    Nor does it hold how many questions whoever asks has asked in the last minute, which is over at any moment.
    """
    text = response.text
    text = re.sub(rf"(?<![0-9A-Za-z])(?:{'|'.join(map(str, ids))})\b", "N", text)
    text = re.sub(r"note \d+", "note", text)
    text = re.sub(r"(Questions in the last minute): \d+", r"\1", text)
    return response.status_code, response.headers.get("Location", ""), text


@pytest.mark.parametrize("every", [False, pytest.param(True, marks=pytest.mark.long)])
def test_only_the_owner_reaches_what_is_theirs(
    world: World, record_property: Callable[[str, str], None], every: bool
) -> None:
    kept = kept_of_owner(world)
    policies = {route.endpoint: route.policy for route in routes_of(world.app)}
    assert kept
    for number, (endpoint, method, rule) in enumerate(routes(world.app)):
        policy = policies[endpoint]
        path = path_of(rule, world.ids)
        for who in some_of(("nobody", "revoked token", "disabled person"), number, every):
            response = world.call(who, endpoint, method, path)
            assert CANARY not in response.text, (who, method, path)
            if policy.ability is not None:
                assert response.status_code == 401, (who, method, path)
        if policy.ability is not None:
            needed = "session" if policy.session else policy.ability
            world.cells += 1
            refused = send(world.narrow[needed], endpoint, method, path)
            assert refused.status_code == 403, (needed, method, path)
        if not has_foreign_id(rule) or policy.ability is None or endpoint == "people_pages.delete":
            continue
        for who in some_of(("another person", "admin"), number, every):
            if policy.ability == "admin" and who == "admin":
                continue  # Accounts are an administrator's.
            absent = world.call(who, endpoint, method, path_of(rule, of_missing(world)))
            for trash in (False, True) if "<int:conversation_id>" in rule else (False,):
                foreign = path_of(rule, world.ids, trash)
                mine = world.call(who, endpoint, method, foreign)
                numbers = [MISSING, *world.ids.values()]
                assert seen_by_strangers(mine, *numbers) == seen_by_strangers(absent, *numbers), (who, method, foreign)
                assert mine.status_code in (403, 404), (who, method, foreign, mine.text)
                assert CANARY not in mine.text, (who, method, foreign)
    assert kept_of_owner(world) == kept
    for endpoint, method, rule in routes(world.app):
        policy = policies[endpoint]
        if policy.ability in (None, "admin") or endpoint.startswith("account_pages."):
            continue
        response = world.call("owner", endpoint, method, path_of(rule, world.ids))
        # Here the owner finds what nobody else did; afterwards it may be gone.
        if endpoint not in ENDINGS[1:] and endpoint not in IN_TRASH and endpoint not in LED_BY_A_SECRET:
            is_there = response.status_code not in (401, 403, 404)
            assert is_there or {"NoSummary", "ReceiptNotFound"} & {response.json["error"]["type"]}, (method, rule)
    record_property("matrix", f"{world.engine}: {len(routes(world.app))} routes, {world.cells} cells, 0 leaks.")


def test_what_a_body_or_an_address_names_is_not_there_either(
    world: World, record_property: Callable[[str, str], None]
) -> None:
    kept = kept_of_owner(world)
    client = world.callers["another person"]
    own = {"own": world.own["conversation_id"], "own_document": world.own["document_id"]}
    foreign = world.ids | own | {"tag": TAG}
    missing = of_missing(world) | own | {"tag": "nosuchtag"}
    for named in NAMED:
        answers = [named.made(client, ids) for ids in (foreign, missing)]
        # What somebody asked for themselves stands in the answer; nothing else of it may.
        said = [
            seen_by_strangers(answer, MISSING, *world.ids.values())[2].replace(TAG, "T").replace("nosuchtag", "T")
            for answer in answers
        ]
        assert answers[0].status_code == answers[1].status_code != 500, named.what
        assert CANARY not in said[0], named.what
        assert _plain(said[0]) == _plain(said[1]), named.what
    assert kept_of_owner(world) == kept
    record_property("matrix", f"{world.engine}: {2 * len(NAMED)} requests that name what is another's, 0 leaks.")


def _plain(text: str) -> str:
    """Return a page or an answer without what differs each time: moments, positions, and what was asked before."""
    text = re.sub(r"\d{4}-\d\d-\d\dT[\d:.+]+|\"turn\": ?\d+|turn-\d+", "", text)
    text = re.sub(r"(?s)data-e?tag='[^']*'|<nav class=\"sidebar\".*?</nav>", "", text)
    return re.sub(r"\d+", "N", text)


LISTS = (
    "/api/conversations", "/api/conversations?deleted=1", "/api/conversations?pinned=1",
    f"/api/conversations?q={CANARY}",
    "/api/conversations?q=hiss", "/api/documents", f"/api/documents?q={CANARY}", "/api/documents/tags", "/api/ratings",
    f"/api/search?q={CANARY}", "/api/search?q=hisses+at+dawn", "/", f"/?q={CANARY}", "/conversations", "/documents",
    f"/documents?q={CANARY}", "/deleted", "/ratings", "/settings", "/account", "/libraries",
    "/api/libraries", "/notes", "/api/notes", "/api/projects", "/projects", "/conversations?select=1", "/v1/models",
)  # fmt: skip


def test_no_list_search_answer_or_log_holds_what_is_anothers(
    world: World, stub: StubModel, caplog: pytest.LogCaptureFixture
) -> None:
    for who in ("another person", "admin"):
        client = world.callers[who]
        for path in LISTS:
            said = client.get(path).text
            for echo in (f"q={CANARY}", f'"{CANARY}"', f"<bdi>{CANARY}</bdi>", "hisses at dawn"):
                said = said.replace(echo, "")  # What was sought for is said again.
            assert CANARY not in said, (who, path)
            assert "dawn" not in said, (who, path)
        before = len(stub.requests)
        answer = ask(client, "What hisses at dawn, and why?")
        assert answer["sources"] == []
        assert CANARY not in repr([seen.body for seen in stub.requests[before:]])
        receipt = client.get(f"/api/turns/{answer['turn_id']}/receipt").text
        assert CANARY not in receipt
    for path in ("/healthz", "/readyz", "/login", "/nothing"):
        assert CANARY not in world.callers["nobody"].get(path).text
    assert CANARY not in caplog.text


@pytest.mark.long
def test_what_is_anothers_takes_as_long_as_what_is_not_there(world: World) -> None:
    client = world.callers["another person"]
    for path in ("/api/conversations/{}", "/api/turns/{}", "/api/documents/{}"):
        name = {"c": "conversation_id", "t": "turn_id", "d": "document_id"}[path.split("/")[2][0]]
        costs: dict[int, list[float]] = {world.ids[name]: [], MISSING: []}
        for _ in range(60):
            for number, taken in costs.items():
                before = time.thread_time()
                assert client.get(path.format(number), buffered=True).status_code == 404
                taken.append(time.thread_time() - before)
        foreign, absent = (median(taken) for taken in costs.values())
        assert 0.7 < foreign / absent < 1.4, path
