"""A receipt part by part: nothing that was sent is lost. The command that sends it again does nothing else."""

import json
import subprocess
from datetime import UTC, datetime
from typing import Any

import pytest
from msgspec.structs import replace

from rag_assistant.conversations.prompts import question_message
from rag_assistant.records import Message, Passage, RelatedTurn, Turn
from rag_assistant.retrieval.postprocess import number_sources
from rag_assistant.web.pages.receipt import as_curl, parts_of

TURN = Turn(1, 1, 9, "completed", "How many?", "Seventeen [1].", datetime.now(UTC))
HOSTILE = ["it's", "$(touch x) `id` $HOME", "JSON\nJSON\n", "\\'\"; rm -rf /", "\u202e\u009bgeese"]
PASSAGE = Passage(1, 1, "geese.txt", 0, 9, "Seventeen geese.", None, 0.9)
NOTICE = {"role": "system", "content": "[History trimmed to last 2 turns]"}


def said(role: str, text: str) -> Message:
    return {"role": role, "content": text}


def parts(messages: list[Message], prefix: int, **more: Any) -> list[tuple[str, int | None, str]]:
    turn = replace(TURN, history={"summary_sent": more.pop("summary", False)})
    body = {"request": {"messages": messages}, "prefix_messages": prefix} | more
    found = parts_of(turn, body)
    return [(part.kind, part.turn, " / ".join(text for _, text in part.texts)) for part in found]


def test_every_part_of_a_request_has_its_place() -> None:
    recalled = (RelatedTurn(2, "Ducks?", "Three.", ()),)
    question = question_message("How many?", number_sources([PASSAGE]), recalled)
    call = {"role": "assistant", "content": None, "tool_calls": [{"function": {"name": "look", "arguments": "{}"}}]}
    messages = [
        said("system", "Answer."), NOTICE, said("user", "Record"), said("assistant", "Noted."),
        said("user", "One?"), said("user", "Or two?"), said("assistant", "One."),
        said("user", "And?"), said("assistant", "So."), question, call, said("tool", "found"),
    ]  # fmt: skip
    found = parts(messages, 9, summary=True, kept_turns=[7, 8])
    assert [(kind, number) for kind, number, _ in found] == [
        ("system", None), ("notice", None), ("summary", None), ("history", 7), ("history", 8), ("recalled", None),
        ("passages", None), ("question", None), ("steps", None),
    ]  # fmt: skip
    assert found[3][2] == "One? / Or two? / One."
    assert "Three." in found[5][2]
    assert found[6][2].startswith("<passages>")
    assert found[6][2].endswith("</passages>")
    assert found[7][2] == "How many?"
    assert found[8][2] == "look {} / found"


def test_a_question_that_looks_like_passages_stays_a_question() -> None:
    assert parts([said("user", "What is <passages>?")], 0) == [("question", None, "What is <passages>?")]


def test_turns_whose_numbers_are_not_known_for_sure_have_none() -> None:
    messages = [said("system", "x"), said("user", "One?"), said("assistant", "One."), said("user", "Two?")]
    assert parts(messages, 3, kept_turns=[4, 5])[1] == ("history", None, "One? / One.")


@pytest.mark.parametrize("text", HOSTILE)
def test_the_command_sends_the_request_and_does_nothing_else(text: str) -> None:
    request = {"model": text, "messages": [said("user", text)]}
    command = as_curl(request, f"http://user:secret@host/{text!r}/v1/".replace("\n", ""))
    assert "secret" not in command
    assert command.isascii() or "geese" in command
    shell = 'curl() { printf "%s\\0" "$@"; cat; }\nOPENAI_API_KEY=k\n'
    ran = subprocess.run(["bash", "-c", shell + command], capture_output=True, check=True, cwd="/")
    *arguments, body = ran.stdout.decode().split("\0")
    assert json.loads(body) == request
    assert arguments[0].startswith("http://host/")
    assert arguments[1:] == [
        "-H",
        "Authorization: Bearer k",
        "-H",
        "Content-Type: application/json",
        "--data-binary",
        "@-",
    ]
    assert ran.stderr == b""


def test_the_parts_have_the_tokens_that_the_figures_of_the_answer_tell() -> None:
    messages = [
        said("system", "Answer."), NOTICE, said("user", "Record"), said("assistant", "Noted."),
        said("user", "One?"), said("assistant", "One."), said("user", "Two?"), said("assistant", "Two."),
        question_message("How many?", number_sources([PASSAGE]), ()),
    ]  # fmt: skip
    tokens = {"system": 120, "summary": 100, "history": 40, "passages": 300, "question": 12}
    turn = replace(TURN, history={"summary_sent": True, "tokens": tokens})
    found = parts_of(turn, {"request": {"messages": messages}, "prefix_messages": 8, "kept_turns": [7, 8]})
    by_kind: dict[str, int] = {}
    for part in found:
        by_kind[part.kind] = by_kind.get(part.kind, 0) + part.tokens
    assert by_kind.pop("system") + by_kind.pop("notice") == 120
    assert by_kind == {"summary": 100, "history": 40, "passages": 300, "question": 12}
