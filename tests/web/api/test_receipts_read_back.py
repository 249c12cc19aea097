"""Whatever happens afterwards, a receipt is what the model was sent, byte for byte."""

import itertools
import json
from typing import Any

import pytest
from flask.testing import FlaskClient
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from rag_assistant.conversations.prompts import PROMPTS
from rag_assistant.history.erasing import receipt_without
from rag_assistant.services import Services
from tests.testkit.samples import sample
from tests.testkit.stub_model import Reply, Seen, StubModel
from tests.web.api.conversations import FILLER
from tests.web.conftest import ask, both_engines, until, upload

SENTENCE = "The {0} keeper of the {0} lighthouse feeds seventeen {0} geese at nine in the {0} morning. "
TABLE = "\n\n| goose | weight |\n|---|---|\n" + "".join(f"| goose {n} of {{0}} | {n} kg |\n" for n in range(12))
PLACES = ("northern", "southern", "eastern")
QUESTIONS = (
    "How many geese does the keeper of the {} lighthouse feed?",
    "And at what time in the morning?",
    "Why?",
    f"Which goose of the {{}} table is it? {FILLER}",
)
STEPS = st.lists(
    st.tuples(
        st.sampled_from(
            ["ask"] * 5 + ["regenerate", "edit", "choose", "exclude", "delete document", "replace document", "erase"]
        ),
        st.integers(0, 11),
    ),
    min_size=4,
    max_size=12,
)


@pytest.fixture
def environment(environment: dict[str, str], request: pytest.FixtureRequest) -> dict[str, str]:
    return environment | {"QUERY_REWRITING": "model", "RETRIEVAL_MODE": request.param, "CHUNK_CHARS": "200"}


class Life:
    """One conversation with its branches: what was sent for each answer of each turn."""

    numbers = itertools.count()

    def __init__(self, client: FlaskClient, stub: StubModel, services: Services) -> None:
        self.client, self.stub, self.services = client, stub, services
        self.sent: dict[tuple[int, int], dict[str, Any]] = {}
        self.turns: list[dict[str, Any]] = []
        self.documents = {place: self.document(place) for place in PLACES}

    def document(self, place: str, replaces: int | None = None) -> int:
        fields = {} if replaces is None else {"replaces": str(replaces)}
        text = SENTENCE.format(place) * 3 + f"It is number {next(self.numbers)}." + TABLE.format(place)
        made = int(upload(self.client, text, f"{place}.md", wait=replaces is None, **fields)["document_id"])
        if replaces is not None:
            until(lambda: self.client.get(f"/api/documents/{made}").json["document_id"] != made)
        return replaces or made

    def step(self, name: str, n: int) -> None:
        if name == "ask" or not self.turns:
            window = {} if n % 3 == 0 else {"max_history_turns": None if n % 3 == 1 else 1}
            here = {"conversation_id": self.turns[-1]["conversation_id"]} if self.turns else {}
            return self.ask(n, **here, **window)
        turn = self.turns[n % len(self.turns)]
        if name == "edit":
            return self.ask(n, edits_turn=turn["turn_id"])
        place = PLACES[n % len(PLACES)]
        if name == "delete document":
            self.client.delete(f"/api/documents/{self.documents[place]}")
            self.documents[place] = self.document(place)
        elif name == "replace document":
            self.document(place, replaces=self.documents[place])
        elif name == "exclude":
            self.client.patch(f"/api/turns/{turn['turn_id']}", json={"excluded": n % 2 == 0})
        elif name == "choose":
            self.client.post(f"/api/turns/{turn['turn_id']}/versions/{n % 2 + 1}/choose")
        elif name == "regenerate":
            self.regenerate(self.turns[-1]["turn_id"], n)
        elif self.services.turns.get(turn["turn_id"]).status != "erased":
            self.erase(turn["turn_id"])
        return None

    def ask(self, n: int, **fields: Any) -> None:
        before = self.prepare(n)
        origin = fields.get("edits_turn")
        answer = ask(self.client, QUESTIONS[n % 4].format(PLACES[n % 3]), **fields)
        if origin is not None:
            self.note_copies(answer["conversation_id"], origin)
        self.turns.append(answer)
        self.note(answer["turn_id"], before)

    def regenerate(self, turn_id: int, n: int) -> None:
        before = self.prepare(n)
        if self.client.post(f"/api/turns/{turn_id}/regenerate").status_code == 202:
            until(lambda: self.client.get(f"/api/turns/{turn_id}").json["status"] == "completed")
            self.note(turn_id, before)

    def prepare(self, n: int) -> int:
        """Let the model answer at some length, now and then after a search; return how much it was asked before."""
        found = {"id": f"c{n}", "name": "search_documents", "arguments": {"query": f"{PLACES[n % 3]} geese"}}
        text = f"Answer {next(self.numbers)} of {n} [1]. {FILLER}"

        def reply(seen: Seen) -> Reply:
            searches = n % 2 and "tools" in seen.body and seen.messages[-1]["role"] == "user"
            return Reply(tool_calls=[found]) if searches else Reply(text)

        self.stub.next_reply = reply
        return len(self.stub.requests)

    def note(self, turn_id: int, before: int) -> None:
        requests = self.stub.requests[before:]
        rewriting = [one for one in requests if one.messages[0]["content"] == PROMPTS["rewrite"]]
        querying = [one for one in requests if one.messages[0]["content"] == PROMPTS["query_table"]]
        answering = [one for one in requests if one not in (*rewriting, *querying)]
        turn = self.services.turns.get(turn_id)
        self.sent[turn_id, turn.version] = {
            "request": as_sent(answering[-1]),
            "earlier_requests": [as_sent(one) for one in answering[:-1]],
            "rewrite": as_sent(rewriting[0]) if rewriting else None,
            "reading": [{"request": as_sent(one)} for one in querying],
        }

    def note_copies(self, branch: int, edited: int) -> None:
        before = self.services.turns.get(edited)
        originals = {turn.number: turn.id for turn in self.services.turns.every(before.conversation_id)}
        for copy in self.services.turns.every(branch):
            if copy.number < before.number:
                own = {key[1]: sent for key, sent in self.sent.items() if key[0] == originals[copy.number]}
                self.sent |= {(copy.id, version): sent for version, sent in own.items()}

    def erase(self, turn_id: int) -> None:
        """Erase a turn; what is left of the receipts of later ones is what the rule for that says."""
        copies, whole = self.copies_of(turn_id), {}
        for erased in copies:
            for turn in self.services.turns.every(erased.conversation_id):
                if turn.number > erased.number and (found := self.services.turns.receipt(turn.id)):
                    limit = (turn.history or {}).get("max_history_turns")
                    whole[turn.id] = receipt_without(found, erased.number, limit)
        assert self.client.delete(f"/api/turns/{turn_id}?permanently=1").status_code == 200
        gone = {turn.id for turn in copies}
        for later, left in whole.items():
            found = self.services.turns.receipt(later)
            assert found is not None
            assert shown(found) == shown(left)
            gone |= {later} if "erased_turns" in left else set()
        self.sent = {key: sent for key, sent in self.sent.items() if key[0] not in gone}

    def copies_of(self, turn_id: int) -> list[Any]:
        this = self.services.turns.get(turn_id)
        every = {turn["conversation_id"] for turn in self.turns}
        turns = [turn for one in every for turn in self.services.turns.every(one)]
        same = [turn for turn in turns if turn.question == this.question and turn.created_at == this.created_at]
        return [this, *(turn for turn in same if turn.id != turn_id)]

    def check(self) -> None:
        for (turn_id, version), sent in self.sent.items():
            turn = self.services.turns.get(turn_id)
            if turn.version != version:
                self.client.post(f"/api/turns/{turn_id}/versions/{version}/choose")
            found = self.services.turns.receipt(turn_id)
            if self.services.turns.get(turn_id).version == version:
                assert found is not None
                assert shown(found) == shown(sent)


def as_sent(seen: Seen) -> dict[str, Any]:
    return seen.body


def shown(receipt: dict[str, Any]) -> str:
    """Return the requests of a receipt, or of what was sent, as bytes."""
    rewrite = receipt.get("rewrite")
    requests = [receipt["request"], *receipt["earlier_requests"]]
    requests += [rewrite.get("request", rewrite)] if rewrite else []
    requests += [one["request"] for one in receipt.get("reading") or ()]
    names = ("model", "messages", "tools", "tool_choice", "max_tokens", "temperature")
    return json.dumps([[request.get(name) for name in names] for request in requests])


AS_THEY_COME = settings(deadline=None, phases=[Phase.generate], suppress_health_check=list(HealthCheck))


@both_engines
@pytest.mark.parametrize("environment", sample(["always", "agent"]), indirect=True)
@settings(AS_THEY_COME, max_examples=2)
@given(steps=STEPS)
def test_what_is_read_back_is_what_was_sent(
    client: FlaskClient, stub: StubModel, services: Services, steps: list[tuple[str, int]]
) -> None:
    life = Life(client, stub, services)
    for name, n in steps:
        life.step(name, n)
    life.check()
    for document in life.documents.values():
        client.delete(f"/api/documents/{document}")
    life.check()


@pytest.mark.long
@pytest.mark.timeout(1800)
@both_engines
@pytest.mark.parametrize("environment", ["always", "agent"], indirect=True)
@settings(AS_THEY_COME, max_examples=40)
@given(steps=STEPS)
def test_it_is_in_many_more_conversations(
    client: FlaskClient, stub: StubModel, services: Services, steps: list[tuple[str, int]]
) -> None:
    test_what_is_read_back_is_what_was_sent.hypothesis.inner_test(client, stub, services, steps)
