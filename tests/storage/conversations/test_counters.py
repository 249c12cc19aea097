"""The counters of a conversation are what counting everything anew gives, whatever was done before."""

from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from sqlalchemy import select

from rag_assistant.records import Message, Question
from rag_assistant.records.errors import AssistantError
from rag_assistant.storage.conversations.erasing import TurnEraser
from rag_assistant.storage.conversations.versions import VersionStore
from rag_assistant.storage.database import Database
from rag_assistant.storage.tables import conversations, summaries, turns
from tests.storage.conversations.test_history import Talk

CALL = {"id": "a", "type": "function", "function": {"name": "x", "arguments": "{}"}}
TOOLS: list[Message] = [
    {"role": "assistant", "content": None, "tool_calls": [CALL]},
    {"role": "tool", "tool_call_id": "a", "content": "r"},
]
ACTIONS = (
    *("say", "say", "call tools", "fail", "wait", "confirm", "pin", "unpin", "exclude", "include", "clear", "reset"),
    *("compact", "edit summary", "undo", "undo", "regenerate", "choose", "erase", "branch"),
)
STEPS = st.lists(st.tuples(st.sampled_from(ACTIONS), st.integers(0, 20)), min_size=5, max_size=30)


class Conversation(Talk):
    """A conversation to which all is done that can be."""

    def __init__(self, database: Database) -> None:
        super().__init__(database)
        self.database = database
        self.versions = VersionStore(database, str.lower)
        self.waiting: list[int] = []
        self.say("one", "two", "three")

    def step(self, name: str, n: int) -> None:
        """Do something with one of the turns; what is refused changes nothing."""
        turn_id = self.ids[n % len(self.ids)]
        with suppress(AssistantError):
            match name:
                case "say":
                    self.say("more")
                case "call tools" | "fail" | "wait":
                    self.say_otherwise(name)
                case "confirm":
                    self.confirm()
                case "pin" | "unpin":
                    self.history.mark(turn_id, pinned=name == "pin")
                case "exclude" | "include":
                    self.history.mark(turn_id, excluded=name == "exclude")
                case "clear" | "reset":
                    self.history.move_context_start(self.conversation.id, name)
                case "compact":
                    self.compact(n)
                case "edit summary":
                    self.history.edit_summary(self.conversation.id, f"Summary {n}.")
                case "undo":
                    self.history.undo(self.conversation.id)
                case "regenerate":
                    running, _ = self.turns.regenerate(self.ids[-1])
                    text = "Another answer." * (n % 3)  # Without text an answer has failed (answering/sending.py).
                    self.turns.finish(running, "completed" if text else "failed", text)
                case "choose":
                    self.versions.choose(turn_id, n % 2 + 1)
                case "erase":
                    TurnEraser(self.database, str.lower).erase(turn_id)
                case "branch":
                    self.branch_off(turn_id)

    def say_otherwise(self, how: str) -> None:
        turn, _ = self.turns.accept(Question("more", self.id), "t")
        self.ids.append(turn.id)
        self.turns.keep_iteration(turn.id, TOOLS)
        if how == "wait":
            turn = replace(turn, waiting={"call_id": "a", "tool": "x", "arguments": {}})
            self.waiting.append(turn.id)
        answer = "" if how == "fail" else "So?"
        self.turns.finish(turn, "completed" if answer else "failed", answer)

    def confirm(self) -> None:
        if self.waiting:
            turn, _ = self.turns.accept(Question("yes", self.id, confirms_turn=self.waiting.pop()), "t")
            self.ids.append(turn.id)
            self.turns.finish(turn, "completed", "Done.")

    def compact(self, n: int) -> None:
        begun = self.conversation
        own = turns.c.conversation_id == begun.id, turns.c.number >= begun.view_start
        with self.database.read() as connection:
            query = select(turns.c.number).where(*own, turns.c.visible, ~turns.c.held).order_by(turns.c.number)
            seen = list(connection.execute(query).scalars())
        if seen:
            self.history.keep_summary(begun, f"Summary {n}.", seen[: n % len(seen) + 1], "a model", None)

    def branch_off(self, turn_id: int) -> None:
        """Go on in a branch."""
        made, _ = self.turns.accept(Question("otherwise", edits_turn=turn_id), "t")
        self.turns.finish(made, "failed", "")
        with self.database.read() as connection:
            query = select(turns.c.id).where(turns.c.conversation_id == made.conversation_id).order_by(turns.c.number)
            self.ids = list(connection.execute(query).scalars())
        self.id = made.conversation_id
        self.waiting = []

    def told(self) -> dict[str, Any]:
        """Return what the counters say."""
        with self.database.read() as connection:
            row = connection.execute(select(conversations).where(conversations.c.id == self.id)).mappings().one()
            held = connection.execute(select(turns.c.id).where(turns.c.conversation_id == self.id, turns.c.held))
            told = {name: row[name] for name in ("visible_turns", "visible_messages", "held_turns")}
            runs = [(run["reason"], run["turns"], run["messages"]) for run in row["standing_runs"]]
            return told | {"runs": runs, "held": sorted(held.scalars())}

    def counted(self) -> dict[str, Any]:  # type: ignore[override]
        """Return what they have to say, from all rows."""
        with self.database.read() as connection:
            row = connection.execute(select(conversations).where(conversations.c.id == self.id)).mappings().one()
            own = select(turns).where(turns.c.conversation_id == self.id).order_by(turns.c.number)
            every = connection.execute(own).mappings().all()
            query = select(summaries.c.covered).where(summaries.c.id == row["summary_id"])
            covered = connection.execute(query).scalar() or []
        seen = [one for one in every if one["visible"]]
        summarised = [one for one in seen if any(first <= one["number"] <= last for first, last in covered)]
        held = [
            one
            for one in seen
            if one["number"] >= row["context_start"]
            and (one["pinned"] or one["waiting"] or (one["number"] < row["view_start"] and one not in summarised))
        ]
        cleared = [one for one in every if one["number"] < row["context_start"] and was_answered(one)]
        hidden = [
            one
            for one in every
            if not one["visible"] and (one["number"] >= row["context_start"] or not was_answered(one))
        ]
        skipped = [one for one in held if one["number"] < row["view_start"] and not (one["pinned"] or one["waiting"])]
        in_view = [one for one in seen if one["number"] >= row["view_start"]] + skipped
        return {
            "visible_turns": len(in_view),
            "visible_messages": messages_in(in_view),
            "held_turns": len(held),
            "runs": [
                *([("cleared", len(cleared), messages_in(cleared))] if row["context_start"] > 1 else []),
                *([counted_run("summarised", [one for one in summarised if one not in held])] if covered else []),
                *(counted_run(why_hidden(one), [one]) for one in hidden),
            ],
            "held": sorted(one["id"] for one in held),
        }


def counted_run(reason: str, some: Sequence[Any]) -> tuple[str, int, int]:
    return reason, len(some), messages_in(some)


def messages_in(some: Sequence[Any]) -> int:
    return sum(one["message_count"] for one in some)


def was_answered(turn: Any) -> bool:
    return bool(turn["visible"] or ((turn["excluded"] or turn["purged"]) and turn["status"] != "failed"))


def why_hidden(turn: Any) -> str:
    if turn["status"] == "erased" or not was_answered(turn):
        return "erased" if turn["status"] == "erased" else "failed"
    return "purged" if turn["purged"] else "excluded"


@pytest.mark.parametrize("examples", [6, pytest.param(15, marks=pytest.mark.long)])
def test_after_anything_that_is_done_they_are_what_a_full_count_gives(database: Database, examples: int) -> None:
    @settings(deadline=None, max_examples=examples, suppress_health_check=list(HealthCheck))
    @given(steps=STEPS)
    def check(steps: list[tuple[str, int]]) -> None:
        made = Conversation(database)
        for name, n in steps:
            made.step(name, n)
            assert made.told() == made.counted(), name

    check()
