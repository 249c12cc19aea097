"""A walk: anything happens to a conversation, in any order, and after each question the model was sent what it should.

What should be sent is worked out by ``window_model``. A walk that fails is shortened to the steps that it needs.
"""

from __future__ import annotations

import json
import random
from collections import Counter
from dataclasses import replace
from itertools import count
from typing import Any

import pytest
from flask.testing import FlaskClient

from rag_assistant.services import Services
from tests.testkit.stub_model import Reply, StubModel
from tests.web.api.tool_calls import search
from tests.web.api.window_model import Rules, Talk, Turn
from tests.web.conftest import until

# A step: what is done, and a number that decides everything else about it.
Step = tuple[str, int]
WEIGHTS = {
    **{"ask": 12, "pin": 3, "exclude": 3, "include": 3, "release": 1, "clear": 1, "reset": 1, "compact": 3, "undo": 3},
    **{"branch": 2, "choose": 2, "regenerate": 3, "retry": 4, "erase": 1, "limit": 2, "settings": 2, "leave": 1},
}
FILLER = "It was said at some length, so that a summary of it can be shorter than what it stands for. " * 2
# Room is kept for the longest notice, which has at most this many tokens more.
MARGIN = 12
SEED = 59
# What a walk must have met: each of these changed what was sent, or was done.
MET = {"window_slack", "filtered", "token_limit", "tool_iterations_keep", "regenerate", "retry"}


class Walk:
    """Does each step over the API and with the model of the window, and compares."""

    def __init__(self, client: FlaskClient, stub: StubModel, services: Services) -> None:
        self.client, self.stub, self.services = client, stub, services
        stub.default = Reply("They spoke of it.", usage={"completion_tokens": 1})
        stub.replies.clear()
        self.talks: dict[int, Talk] = {}
        self.roots, self.summaries = count(1), count(1)
        self.rules, self.budget, self.iterations_keep = Rules(), None, 2
        self.set_up(window_slack=0, history_token_budget=None, tool_iterations_keep=2)
        self.id = 0
        self.met: set[str] = set()
        # By conversation, in the order of the turns.
        self.ids: dict[int, list[int]] = {}

    @property
    def talk(self) -> Talk:
        return self.talks[self.id]

    def set_up(self, **settings: Any) -> None:
        self.services.settings.path.write_text(json.dumps(settings))
        self.services.settings.look()

    def send(self, path: str, method: str = "post", **fields: Any) -> Any:
        return getattr(self.client, method)(f"/api/{path}", json=fields or None)

    def do(self, step: Step) -> None:
        action, number = step
        if action == "ask" or not self.talks:
            return self.ask(number)
        getattr(self, action)(number)
        return None

    # --- questions

    def ask(self, number: int, edited: Turn | None = None) -> None:
        """Ask a question, which may call tools, fail or break off."""
        dice = random.Random(number)
        root = next(self.roots)
        overflow = dice.choice(["trim", "trim", "trim", "compact", "reset", "continue"]) if not self.budget else "trim"
        turn = Turn(0, root, f"Question {root}. {FILLER}", overflow)
        fields: dict[str, Any] = {"conversation_id": self.id or None, "on_overflow": overflow}
        if edited is not None:
            fields = {"edits_turn": self.turn_id(edited), "on_overflow": overflow}
        talk = self.talks.get(self.id, Talk()) if edited is None else self.talk.branch(edited.number)
        if self.id and edited is None and dice.random() < 0.04:
            self.id = 0  # Another conversation begins.
            talk, fields = Talk(), {"on_overflow": overflow}
        calls = self.script(dice, overflow)
        response = self.send("query", question=turn.question, **{k: v for k, v in fields.items() if v is not None})
        last = self.client.get("/api/conversations?limit=1").json["conversations"][0]["conversation_id"]
        self.id = response.json.get("conversation_id", last)
        self.talks[self.id] = talk
        turn.number = len(talk.turns) + 1
        talk.turns.append(turn)
        self.look(turn, calls)

    def script(self, dice: random.Random, overflow: str) -> int:
        """Script the next answer: tool calls, a failure, a broken stream. Return the number of its tool calls."""
        self.stub.requests.clear()
        calls = dice.choice([0, 0, 1, 3]) if overflow != "compact" and not self.budget else 0
        self.stub.replies.extend(search("geese", f"c{n}") for n in range(calls))
        if overflow == "compact":
            return 0
        ending = dice.choice(["whole"] * 6 + ["fails", "breaks off"])
        if ending == "fails":
            self.stub.replies.append(Reply(status=400))
        elif ending == "breaks off":
            self.stub.replies.append(Reply("They spoke of it, too.", break_at=3))
        return calls

    def look(self, turn: Turn, calls: int) -> None:
        """Compare a request and what is told of it with what should have been sent."""
        self.stub.replies.clear()
        talk, number, rules = self.talk, turn.number, replace(self.rules, **self.talk.own)
        turns = self.client.get(f"/api/conversations/{self.id}/turns?limit=1").json["turns"]
        answer = turns[0]
        if len(self.ids.setdefault(self.id, [])) < number - 1:
            path = f"/api/conversations/{self.id}/turns?limit=200"
            self.ids[self.id] = [one["turn_id"] for one in self.client.get(path).json["turns"][:-1]]
        self.ids[self.id][number - 1 :] = [answer["turn_id"]]
        assert (answer["turn"], answer["status"] == "running") == (number, False)
        figures = answer["history"]
        why = talk.reasons(number, rules)
        if talk.trimmed(why, number) and turn.overflow != "trim":
            if turn.overflow == "reset":
                talk.change("reset", talk.moved(number, number))
            elif turn.overflow == "compact":
                talk.summarise(talk.keep_from(why, number), next(self.summaries))
            else:
                rules = replace(rules, limit=None, strategy="window")
        kept = figures["turns_kept"] if self.budget else None
        sent_summary = figures["summary_sent"] or not self.budget
        why = talk.reasons(number, rules, kept, summarised=sent_summary)
        self.look_at_request(turn, why, calls)
        notice = talk.notice(why, number, rules)
        assert (answer["notice"], answer["history_trimmed"]) == (notice, notice is not None)
        reasons = Counter(reason for reason in why.values() if reason)
        assert figures["left_out"] == reasons, (figures["left_out"], why)
        self.met |= {"filtered", "token_limit"} & reasons.keys()
        self.met |= {"window_slack"} if "at least" in (notice or "") else set()
        self.look_at_receipt(answer, why)
        if self.budget:
            self.look_at_budget(figures, why)
        turn.answers[turn.version] = (answer["answer"], min(calls, len(answer["steps"])))

    def look_at_request(self, turn: Turn, why: dict[int, str | None], calls: int) -> None:
        messages = self.stub.requests[-1].messages
        users = [n for n, message in enumerate(messages) if message["role"] == "user"]
        sent = {}
        for begin, end in zip(users, [*users[1:], len(messages)], strict=True):
            sent[messages[begin]["content"].split(".")[0]] = messages[begin + 1 : end]
        past = [one for one in self.talk.turns if one.number < turn.number and why[one.number] is None]
        assert [q for q in sent if q.startswith("Question")] == [
            one.question.split(".")[0] for one in (*past, turn)
        ], why  # fmt: skip
        for one in past:
            parts = sent[one.question.split(".")[0]]
            assert parts[-1]["content"] == one.answer
            assert sum(part["role"] == "tool" for part in parts) == one.calls
        now = sum(part["role"] == "tool" for part in sent[turn.question.split(".")[0]])
        assert now == (calls if self.iterations_keep is None else min(calls, self.iterations_keep))
        self.met |= {"tool_iterations_keep"} if now < calls else set()
        assert len(sent) - len(past) - 1 == ("summarised" in why.values() or self.talk.view.summary is not None), sent

    def look_at_receipt(self, answer: dict[str, Any], why: dict[int, str | None]) -> None:
        """Read the receipt turn by turn: each one is kept, or has the reason of the narrowest run around it."""
        receipt = self.client.get(f"/api/turns/{answer['turn_id']}/receipt").json
        read: dict[int, str | None] = dict.fromkeys(receipt["kept_turns"])
        for n in why.keys() - read.keys():
            around = [run for run in receipt["left_out"] if run["first_turn"] <= n <= run["last_turn"]]
            narrowest = min(around, key=lambda run: run["last_turn"] - run["first_turn"], default={"reason": "no run"})
            read[n] = narrowest["reason"]
        assert read == why, receipt["left_out"]

    def look_at_budget(self, figures: dict[str, Any], why: dict[int, str | None]) -> None:
        """The budget is kept, and the newest turn that it took would not have fitted."""
        total = figures["tokens"]["total"]
        assert total <= self.budget
        gone = [turn for turn in self.talk.turns if why.get(turn.number) == "token_limit" and not turn.pinned]
        if gone and "summarised" not in why.values() and not self.talk.view.summary:
            first = 40 if sum(reason in ("turn_limit", "filtered") for reason in why.values()) + len(gone) < 2 else 0
            cost = 8 + (len(gone[-1].question) + len(gone[-1].answer)) / 3.6 + 400 * gone[-1].calls
            assert total + cost + MARGIN > self.budget - first

    def branch(self, number: int) -> None:
        if turn := self.any(number):
            self.ask(number, turn)

    def regenerate(self, number: int, how: str = "regenerate") -> None:
        """Have the last turn answered again; with ``how`` "retry", if it failed."""
        turn = self.talk.turns[-1]
        dice = random.Random(number)
        calls = self.script(dice, turn.overflow)
        path = f"turns/{self.turn_id(turn)}"
        has_failed = self.client.get(f"/api/{path}").json["status"] == "failed"
        response = self.send(f"{path}/{how}")
        refused = turn.erased or turn.number < self.talk.view.begin or (how == "retry" and not has_failed)
        assert (response.status_code == 202) is not refused, response.text
        if refused:
            return self.stub.replies.clear()
        until(lambda: self.client.get(f"/api/{path}").json["status"] != "running")
        if turn.answer and how == "regenerate":
            turn.version = max(turn.answers) + 1
        self.met.add(how)
        return self.look(turn, calls)

    def retry(self, number: int) -> None:
        self.regenerate(number, "retry")

    def choose(self, number: int) -> None:
        if not (turn := self.any(number)):
            return
        version = number % 3 + 1
        response = self.send(f"turns/{self.turn_id(turn)}/versions/{version}/choose")
        there = version in turn.answers or version == turn.version
        fixed = version != turn.version and self.talk.fixed(turn)
        assert response.status_code == (404 if not there else 409 if fixed else 200), response.text
        if there and not fixed:
            turn.version = version

    # --- marks, and what moves the view

    def turn_id(self, turn: Turn) -> int:
        return self.ids[self.id][turn.number - 1]

    def any(self, number: int) -> Turn | None:
        """Return one of the turns, mostly a recent one."""
        turns = self.talk.turns[-8:] if number % 4 else self.talk.turns
        return turns[number // 7 % len(turns)] if turns else None

    def mark(self, number: int, **marks: bool) -> None:
        if not (turn := self.any(number)):
            return
        response = self.send(f"turns/{self.turn_id(turn)}", "patch", **marks)
        refused = turn.erased or (marks.get("excluded") and turn.number in self.talk.view.covered)
        assert (response.status_code == 200) is not bool(refused), response.text
        if not refused:
            both = {"pinned": turn.pinned, "excluded": turn.excluded}
            kind = "pin" if "pinned" in marks else "exclude"
            set_to = {"pinned": False, "excluded": False} | marks if any(marks.values()) else both | marks
            self.talk.change(kind, marked=turn, **set_to)

    def pin(self, number: int) -> None:
        self.mark(number, pinned=True)

    def release(self, number: int) -> None:
        self.mark(number, pinned=False)

    def exclude(self, number: int) -> None:
        self.mark(number, excluded=True)

    def include(self, number: int) -> None:
        excluded = [turn for turn in self.talk.turns if turn.excluded]
        turn = excluded[number % len(excluded)] if excluded else None
        if turn is not None:
            assert self.send(f"turns/{self.turn_id(turn)}", "patch", excluded=False).status_code == 200
            self.talk.change("exclude", marked=turn, pinned=turn.pinned, excluded=False)

    def clear(self, _: int) -> None:
        assert self.send(f"conversations/{self.id}/clear").status_code == 200
        self.talk.change("clear", self.talk.moved(len(self.talk.turns) + 1))

    def reset(self, _: int) -> None:
        assert self.send(f"conversations/{self.id}/reset").status_code == 200
        self.talk.change("reset", self.talk.moved(len(self.talk.turns) + 1))

    def compact(self, _: int) -> None:
        if self.budget:  # What is in it would depend on an empty question's tokens.
            return
        number = len(self.talk.turns) + 1
        keep_from = self.talk.keep_from(self.talk.reasons(number, replace(self.rules, **self.talk.own)), number)
        done = self.talk.summarise(keep_from, next(self.summaries))
        response = self.send(f"conversations/{self.id}/compact")
        assert (response.status_code == 200) is done, response.text

    def undo(self, _: int) -> None:
        done = self.talk.undo()
        response = self.send(f"conversations/{self.id}/undo")
        assert (response.status_code == 200) is done, response.text

    def erase(self, number: int) -> None:
        if turn := self.any(number):
            assert self.send(f"turns/{self.turn_id(turn)}?permanently=1", "delete").status_code == 200
            for talk in self.talks.values():
                talk.erase(turn.root)

    # --- rules

    def limit(self, number: int) -> None:
        dice = random.Random(number)
        own: dict[str, Any] = dice.choice(
            [{"limit": 0}, {"limit": 1}, {"limit": 3}, {"limit": None}, {"strategy": "smart"}]
        )
        self.talk.own |= own
        fields = {"max_history_turns": own["limit"]} if "limit" in own else {"history_strategy": "smart"}
        assert self.send(f"conversations/{self.id}", "patch", **fields).status_code == 200

    def settings(self, number: int) -> None:
        dice = random.Random(number)
        self.rules = replace(self.rules, slack=dice.choice([0, 0, 1, 3]))
        self.iterations_keep = dice.choice([0, 1, 2, None])
        # The tools and the instructions take about 1,000 tokens.
        self.budget = dice.choice([None, None, None, dice.randrange(1_400, 1_900)])
        self.set_up(
            window_slack=self.rules.slack,
            tool_iterations_keep=self.iterations_keep,
            history_token_budget=self.budget,
        )

    def leave(self, number: int) -> None:
        """Go on with another conversation."""
        self.id = sorted(self.talks)[number % len(self.talks)]


def failure_of(walk: Walk, steps: list[Step]) -> str | None:
    """Return what goes wrong in a walk, and at which step; ``None`` if nothing does."""
    for n, step in enumerate(steps):
        try:
            walk.do(step)
        except (AssertionError, KeyError, IndexError, TypeError) as error:
            return f"step {n + 1}, {step}: {type(error).__name__} {error}"
    return None


def shortened(new_walk: Any, steps: list[Step]) -> list[Step]:
    """Return the fewest steps with which a walk still fails, as far as leaving steps out leads to them."""
    size = max(1, len(steps) // 2)
    while size:
        start = 0
        while start < len(steps):
            fewer = steps[:start] + steps[start + size :]
            if fewer and failure_of(new_walk(), fewer):
                steps = fewer
            else:
                start += size
        size //= 2
    return steps


def walked(client: FlaskClient, stub: StubModel, services: Services, seed: int, length: int) -> set[str]:
    """Walk, and if it fails, fail with the shortest walk that does; return what it met."""
    dice = random.Random(seed)
    actions = dice.choices(list(WEIGHTS), WEIGHTS.values(), k=length)
    steps = [(action, dice.randrange(10_000)) for action in actions]

    def new_walk() -> Walk:
        return Walk(client, stub, services)

    walk = new_walk()
    for n, step in enumerate(steps):
        if failure_of(walk, [step]):
            shortest = shortened(new_walk, steps[: n + 1])
            pytest.fail(f"{shortest}\n{failure_of(new_walk(), shortest)}")
    return walk.met


pytestmark = pytest.mark.settings(RETRIEVAL_MODE="agent", HISTORY_RECALL="0")


def test_the_model_is_sent_what_a_model_of_the_window_says(
    client: FlaskClient, stub: StubModel, services: Services
) -> None:
    assert walked(client, stub, services, SEED, 300) == MET


@pytest.mark.long
@pytest.mark.parametrize("seed", range(25))
def test_long_walks_agree_with_it_too(client: FlaskClient, stub: StubModel, services: Services, seed: int) -> None:
    walked(client, stub, services, seed, 200)


@pytest.mark.long
@pytest.mark.parametrize("engine", ["postgresql"], indirect=True)
@pytest.mark.parametrize("seed", range(25, 30))
def test_walks_on_postgresql_agree_with_it_too(
    client: FlaskClient, stub: StubModel, services: Services, seed: int
) -> None:
    assert not services.database.is_sqlite
    walked(client, stub, services, seed, 200)
