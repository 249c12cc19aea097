"""What an answer says of the earlier turns: the flag, the figures, the notice, the receipt, the page and the export."""

import html
import json
import os
import re
import time
from typing import Any

import pytest
from flask.testing import FlaskClient
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.testkit.samples import sample
from tests.testkit.stub_model import Reply, StubModel
from tests.web.api.conversations import kept
from tests.web.conftest import PAGE, ask

FILLER = "It was said at some length, so that a summary of it can be shorter than what it stands for. "
OF_ANSWER = ("history_trimmed", "notice")

numbers = st.integers(0, 7)
steps = st.one_of(
    st.tuples(st.just("ask"), st.sampled_from(["trim", "trim", "trim", "compact", "reset", "continue"])),
    st.tuples(st.just("window"), st.sampled_from([0, 1, 2, 3, 5, None])),
    st.tuples(st.just("strategy"), st.sampled_from(["window", "smart"])),
    st.tuples(st.sampled_from(["exclude", "pin", "release", "edit"]), numbers),
    st.tuples(st.sampled_from(["clear", "compact", "undo", "regenerate", "fail"]), st.none()),
)


class Talk:
    """A conversation that anything may happen to, and after each answer a look at everything that tells of it."""

    def __init__(self, client: FlaskClient, stub: StubModel) -> None:
        self.client = client
        self.stub = stub
        self.asked = 0
        self.id: int | None = None
        self.told: dict[str, Any] | None = None
        stub.default = Reply("They spoke of it.")
        for _ in range(3):
            self.asked += 1
            self.id = kept(client, f"Question {self.asked}. {FILLER * 2}", self.id).conversation_id
        self.ask("trim")

    def turns(self) -> list[dict[str, Any]]:
        return list(self.client.get(f"/api/conversations/{self.id}/turns?limit=100").json["turns"])

    def do(self, step: str, value: Any) -> None:
        path = f"/api/conversations/{self.id}"
        if step not in ("ask", "edit", "regenerate"):
            self.told = None
        if step == "ask":
            self.ask(value)
        elif step == "window":
            self.client.patch(path, json={"max_history_turns": value})
        elif step == "strategy":
            self.client.patch(path, json={"history_strategy": value})
        elif step in ("clear", "compact", "undo"):
            self.client.post(f"{path}/{step}")
        elif step == "fail":
            self.stub.replies.append(Reply(status=400))
            self.client.post("/api/query", json={"question": "Question lost.", "conversation_id": self.id})
            self.stub.replies.clear()
        elif step == "regenerate":
            self.regenerate()
        else:
            turns = self.turns()
            turn = turns[value % len(turns)]["turn_id"]
            if step == "edit":
                self.ask("trim", edits_turn=turn)
            else:
                marks = {"exclude": {"excluded": True}, "pin": {"pinned": True}}
                self.client.patch(f"/api/turns/{turn}", json=marks.get(step, {"excluded": False, "pinned": False}))

    def ask(self, on_overflow: str, **fields: Any) -> None:
        self.asked += 1
        where = fields or ({"conversation_id": self.id} if self.id else {})
        answer = ask(self.client, f"Question {self.asked}. {FILLER * 2}", on_overflow=on_overflow, **where)
        self.id = answer["conversation_id"]
        self.look(answer)

    def regenerate(self) -> None:
        """Have the last answer once more; where nothing has changed since, it tells the same."""
        before = self.turns()[-1]
        told = self.told
        response = self.client.post(f"/api/turns/{before['turn_id']}/regenerate")
        if response.status_code != 202:
            return
        while (again := self.client.get(f"/api/turns/{before['turn_id']}").json)["status"] == "running":
            time.sleep(0.005)
        self.look(again)
        if told is not None:
            assert self.told == told

    def look(self, answer: dict[str, Any]) -> None:
        """Compare everything that tells what the model saw with what it was sent."""
        figures, turn_id = answer["history"], answer["turn_id"]
        earlier = [turn for turn in self.turns() if turn["turn"] < answer["turn"] and turn["answer"].strip()]
        left_out = figures["left_out"]
        trimmed = sum(left_out.get(reason, 0) for reason in ("turn_limit", "token_limit", "filtered"))
        trimmed += left_out.get("cleared", 0) if answer["history_trimmed"] and figures["reason"] == "cleared" else 0

        assert figures["turns_total"] == len(earlier)
        assert figures["turns_total"] == figures["turns_kept"] + sum(left_out.values()) - left_out.get("failed", 0)
        assert figures["turns_dropped"] == trimmed
        assert answer["history_trimmed"] is (trimmed > 0) is (answer["notice"] is not None)
        assert figures["notice"] == answer["notice"]

        receipt = self.client.get(f"/api/turns/{turn_id}/receipt").json
        runs = receipt["left_out"]
        assert len(receipt["kept_turns"]) == figures["turns_kept"]
        assert {run["reason"] for run in runs} == set(left_out)
        assert sum(run["turns"] for run in runs if run["trimmed"]) == figures["turns_dropped"]

        sent = self.stub.requests[-1].messages
        notices = [message for message in sent if message["role"] == "system"][1:]
        assert [message["content"] for message in notices] == ([answer["notice"]] if answer["notice"] else [])
        past = [message["content"] for message in sent[:-1] if message["role"] == "user"]
        questions = {turn["turn"]: turn["question"] for turn in earlier}
        assert [text for text in past if text.startswith("Question")] == [questions[n] for n in receipt["kept_turns"]]
        assert any(not text.startswith("Question") for text in past) is figures["summary_sent"]
        assert ("summarised" not in left_out) or figures["summary_sent"]

        page = html.unescape(self.client.get(f"/turns/{turn_id}/receipt", headers=PAGE).text)
        counted = re.search(r"It saw (\d+) of (\d+) earlier turn", page)
        if set(left_out) - {"failed"}:
            assert counted is not None
            assert [int(part) for part in counted.groups()] == [figures["turns_kept"], figures["turns_total"]]
        exported = json.loads(self.client.get(f"/api/conversations/{self.id}/export?format=json").text)
        same = next(turn for turn in exported["turns"] if turn["turn"] == answer["turn"])
        assert {name: same[name] for name in OF_ANSWER} == {name: answer[name] for name in OF_ANSWER}
        assert same["history"] == figures
        self.told = {name: answer[name] for name in OF_ANSWER} | {
            name: value for name, value in figures.items() if name != "tokens"
        }


@pytest.fixture(
    params=sample([{"HISTORY_TOKEN_BUDGET": "700"}, {"HISTORY_RECALL": "2", "WINDOW_SLACK": "2"}, {}]),
    ids=["budget", "recall and slack", "window"],
)
def environment(environment: dict[str, str], request: pytest.FixtureRequest) -> dict[str, str]:
    return environment | request.param


@settings(
    max_examples=int(os.environ.get("HISTORY_EXAMPLES", "60")) // 30,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(data=st.lists(steps, min_size=3, max_size=9))
def test_everything_that_tells_of_the_earlier_turns_tells_the_same(
    client: FlaskClient, stub: StubModel, data: list[tuple[str, Any]]
) -> None:
    talk = Talk(client, stub)
    for step, value in data:
        talk.do(step, value)
    talk.ask("trim")
    talk.regenerate()
