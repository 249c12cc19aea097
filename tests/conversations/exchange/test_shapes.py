"""What other products export becomes conversations with branches."""

import json
import tracemalloc
from datetime import UTC, datetime
from typing import Any

import pytest

from rag_assistant.conversations.exchange import products
from rag_assistant.conversations.exchange.products import read_texts
from rag_assistant.records.archive import WholeConversation
from rag_assistant.records.errors import AssistantError, InvalidRequest, MalformedBody
from tests.conversations.exchange import samples
from tests.testkit.samples import sample

HEAD = '{"format": "rag-assistant", "version": 1}\n'
# What the record of a conversation leaves open, as an export has it.
HISTORY: dict[str, Any] = {
    "turns_kept": 1,
    "turns_dropped": 0,
    "messages_dropped": 0,
    "reason": None,
    "tokens": {"passages": 0},
    "left_out": {},
}
SOURCE = {"n": 1, "document_id": 1, "document": "a", "page": None, "start": 0, "end": 4, "text": "Sea.", "score": 0.5}
TURN: dict[str, Any] = {
    "question": "Why?",
    "created_at": "2026-01-01T00:00:00Z",
    "answer": {
        "messages": [{"role": "assistant", "content": "So."}],
        "history": HISTORY,
        "search": {"found": 0},
        "sources": [SOURCE],
    },
    "request": {"tags": ["sea"]},
}


def read(content: Any) -> tuple[WholeConversation, ...]:
    return tuple(read_texts([json.dumps(content).encode()]).conversations)


def said(one: WholeConversation) -> list[tuple[str, str]]:
    return [(turn.question, turn.answer.messages[0]["content"]) for turn in one.turns]


def test_chatgpts_tree_becomes_what_was_shown_and_its_branches() -> None:
    shown, ducks, trumpet = read(samples.chatgpt())
    first = ("[image asset pointer]\n\nWhat do geese do?", "They hiss.")
    assert said(shown) == [first, ("And swans?", "They are silent.")]
    assert said(ducks) == [first, ("And ducks?", "They quack.")]
    assert said(trumpet) == [first, ("And swans?", "They trumpet.")]
    assert [one.branched_from for one in (shown, ducks, trumpet)] == [None, (shown.id, 2), (shown.id, 2)]
    assert (shown.title, shown.pinned, ducks.pinned) == ("Birds", True, False)


def test_what_chatgpts_page_draws_is_its_name_or_nothing() -> None:
    export = samples.chatgpt()
    answer = (
        'Bison won \ue200cite\ue202turn0search1\ue202turn0news2\ue201. \ue200entity\ue202["person","Ada","x"]\ue201'
        " said so\u30104:0\u2020source\u3011."
    )
    export[0]["mapping"]["n4"]["message"]["content"]["parts"] = [answer]
    assert said(read(export)[0])[0][1] == "Bison won. Ada said so."


def test_dates_models_and_where_it_comes_from_are_kept() -> None:
    shown = read(samples.chatgpt())[0]
    assert shown.created_at == datetime.fromtimestamp(samples.MADE, UTC)
    assert shown.updated_at == datetime.fromtimestamp(samples.MADE + 60, UTC)
    turn = shown.turns[0]
    assert turn.created_at == datetime.fromtimestamp(samples.MADE + 2, UTC)
    assert turn.answer.finished_at == datetime.fromtimestamp(samples.MADE + 4, UTC)
    assert (turn.answer.model, turn.answer.notes) == ("gpt-5", ("Imported from ChatGPT.",))


def test_what_is_no_conversation_is_counted() -> None:
    assert read_texts([json.dumps(samples.chatgpt()).encode()]).unreadable == 1


def test_an_open_webui_chat_is_read_without_its_folded_thoughts() -> None:
    shown, other = read(samples.open_webui())
    assert (said(shown), shown.turns[0].answer.model) == ([("What do geese do?", "They honk.")], "qwen3")
    assert (said(other), other.branched_from) == ([("What do geese do?", "They hiss.")], (shown.id, 1))
    assert (shown.archived, other.archived) == (True, True)


def test_a_question_without_an_answer_is_kept_as_failed() -> None:
    content = samples.open_webui()
    history = content[0]["chat"]["history"]
    history["messages"]["z"] = {"parentId": "c", "role": "user", "content": "And?"}
    history["currentId"] = "z"
    turn = read(content)[0].turns[-1]
    assert (turn.question, turn.answer.status, turn.answer.messages) == ("And?", "failed", ())
    history["messages"] = {"a": history["messages"]["a"]}
    (alone,) = read(content)
    assert [turn.answer.status for turn in alone.turns] == ["failed"]


@pytest.mark.parametrize("strange", [float("inf"), -1e300, "2024-13-99", [], True])
def test_a_moment_that_is_none_is_left_out(strange: Any) -> None:
    content = samples.chatgpt()
    content[0]["create_time"] = strange
    assert read(content)[0].created_at == datetime.fromtimestamp(samples.MADE + 2, UTC)


@pytest.mark.long
def test_thousands_of_answers_to_one_question_are_as_many_branches() -> None:
    content = samples.open_webui()
    messages = content[0]["chat"]["history"]["messages"]
    messages |= {f"m{number}": messages["b"] for number in range(5000)}
    first, *branches = read(content)
    assert len(branches) == 5001
    assert {one.branched_from for one in branches} == {(first.id, 1)}


def test_thoughts_without_an_end_are_text_however_many_begin() -> None:
    content = samples.open_webui()
    text = '<details type="reasoning">' * 200_000
    content[0]["chat"]["history"]["messages"]["b"]["content"] = text
    assert text in [turn.answer.messages[0]["content"] for one in read(content) for turn in one.turns]


def test_a_circle_of_messages_ends() -> None:
    content = samples.open_webui()
    content[0]["chat"]["history"]["messages"]["a"]["parentId"] = "b"
    assert [said(one) for one in read(content)]


def test_a_tree_that_would_become_too_much_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(products, "MAX_CHARS", 100)
    with pytest.raises(InvalidRequest, match='The conversation "Birds" has more than 50000 turns or 100 characters'):
        read(samples.chatgpt())


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[]", "The file holds an empty list. It must be conversations.json of ChatGPT"),
        ('[{"uuid": 1, "chat_messages": []}]', 'an object with the fields "uuid", "chat_messages". It must be'),
        ("7", "The file holds 7."),
        ('["a"]', 'The file holds a list that begins with "a".'),
        ("{", "The file is not JSON"),
        ("[{}", "The file is not JSON"),
        ("[{},]", "The file is not JSON"),
        ("[{}] {}", "The file is not JSON"),
        ("[{}}", "The file is not JSON"),
        ("[" * 100_000, "The file is nested too deeply"),
        ('{"format": "rag-assistant", "version": 2}', "has version 2; this program reads version 1"),
        (
            '{"format": "rag-assistant", "version": 1}\n{"recipe": 1}',
            "Line 2 of the archive must be an object with one",
        ),
        (
            '{"format": "rag-assistant", "version": 1}\n{"conversation": {"overrides": {"max_history_turns": "x"}}}',
            "Line 2 of the archive, conversation: ",
        ),
        *(
            (f'{HEAD}{{"conversation": {{"usage": {number}}}}}', f"Line 2 of the archive is not JSON ({said})")
            for number, said in (
                ("NaN", "NaN is no number"),
                ("1e999", "1e999 is no number"),
                ("9223372036854775808", "the number 9223372036854775808... is too large"),
            )
        ),
        (
            '{"format": "rag-assistant", "version": 1}\n{"document": {"id": 1, "name": "a", "sha256": "../x"}}',
            "Line 2 of the archive, document: sha256 is wrong",
        ),
        (
            '{"format": "rag-assistant", "version": 1}\n{"conversation": {"id": 1, "title": "a", "turns": [], '
            '"created_at": "2026-01-01T00:00:00Z", "updated_at": "2026-01-01T00:00:00Z", "overrides": {"mood": 1}}}',
            "Line 2 of the archive, conversation: overrides.mood is not known.",
        ),
    ],
)
def test_other_files_are_refused_by_what_they_hold(text: str, said: str) -> None:
    with pytest.raises(AssistantError) as refused:
        read_texts([text.encode()])
    assert isinstance(refused.value, InvalidRequest | MalformedBody)
    assert said in str(refused.value)


def archived(*turns: dict[str, Any], **more: Any) -> str:
    one = {"id": 1, "title": "a", "created_at": "2026-01-01T00:00:00Z", "updated_at": "2026-01-01T00:00:00Z"}
    return HEAD + json.dumps({"conversation": one | {"turns": turns} | more}) + "\n"


@pytest.mark.parametrize(
    ("part", "said"),
    [
        ({"answer": {"messages": [{"role": 1}]}}, "answer.messages[0].role is wrong"),
        ({"answer": {"messages": [{"role": "assistant", "content": {}}]}}, "answer.messages[0].content is wrong"),
        ({"answer": {"messages": [{"role": "tool", "images": ["a"]}]}}, "answer.messages[0].images is wrong"),
        ({"answer": {"history": HISTORY | {"left_out": [1]}}}, "answer.history.left_out is wrong"),
        ({"answer": {"history": HISTORY | {"tokens": {}}}}, "answer.history.tokens is wrong"),
        ({"answer": {"search": {}}}, "answer.search is wrong"),
        ({"answer": {"search": {"found": -1}}}, "answer.search.found is wrong"),
        ({"answer": {"usage": {"prompt_tokens": None}}}, "answer.usage.prompt_tokens is wrong"),
        ({"answer": {"search": {"found": 1, "query": 7}}}, "answer.search.query is wrong"),
        ({"answer": {"history": HISTORY | {"max_history_turns": -1}}}, "answer.history.max_history_turns is wrong"),
        ({"answer": {"history": HISTORY | {"turns_kept": -1}}}, "answer.history.turns_kept is wrong"),
        ({"answer": {"history": HISTORY | {"recalled_turns": [2**40]}}}, "answer.history.recalled_turns[0] is wrong"),
        ({"answer": {"sources": [SOURCE | {"end": 2**40}]}}, "answer.sources[0].end is wrong"),
        ({"request": {"document_ids": 7}}, "request.document_ids is wrong"),
        ({"request": {"tags": [["sea"]]}}, "request.tags[0] is wrong"),
        ({"others": {"2": {"history": HISTORY | {"missing": 3}}}}, "others[...].history.missing is wrong"),
    ],
)
def test_a_turn_that_could_not_be_shown_is_refused_by_what_is_wrong_in_it(part: dict[str, Any], said: str) -> None:
    (whole,) = read_texts([archived(TURN).encode()]).conversations
    assert whole.turns[0].answer.history == HISTORY
    with pytest.raises(InvalidRequest) as refused:
        read_texts([archived(TURN | part).encode()])
    assert f"Line 2 of the archive, conversation: turns[0].{said}" in str(refused.value)


def summary(*covered: list[int]) -> dict[str, Any]:
    return {"covered": covered, "text": "So.", "written_by": "extract", "created_at": "2026-01-01T00:00:00Z"}


def rated(version: int) -> dict[str, Any]:
    return TURN | {"rating": {"rating": "up", "version": version, "rated_at": "2026-01-01T00:00:00Z"}}


FITTING = [
    {"context_start": 4, "view_start": 4},
    {"context_start": 1, "view_start": 4, "summary": summary([1, 1], [2, 2])},
    {"turns": [rated(2) | {"version": 1, "others": {"2": {}, "3": {}}}]},
]
CONTRADICTING = [
    ({"context_start": 0}, "context_start is wrong (0 is not from 1 to 4)"),
    ({"context_start": 5, "view_start": 5}, "context_start is wrong (5 is not from 1 to 4)"),
    ({"context_start": 2}, "view_start is wrong (1 is not from 2 to 4)"),
    ({"view_start": 5}, "view_start is wrong (5 is not from 1 to 4)"),
    *(
        ({"context_start": 2, "view_start": 4, "summary": summary([2, 2], run)}, "summary.covered[1] is wrong")
        for run in ([2, 3], [3, 4], [3, 2])
    ),
    ({"context_start": 2, "view_start": 4, "summary": summary([1, 2])}, "[1, 2] is no run of turns between 2 and 3"),
    ({"turns": [TURN | {"version": 2}]}, "turns[0].version is wrong (2 is not from 1 to 1)"),
    ({"turns": [TURN | {"others": {"3": {}}}]}, "turns[0].others is wrong (of 2 answers, none has the version 2)"),
    ({"turns": [TURN | {"others": {"1": {}}}]}, "turns[0].others is wrong (of 2 answers, none has the version 2)"),
    ({"turns": [TURN, rated(2)]}, "turns[1].rating.version is wrong (2 is not from 1 to 1)"),
]


@pytest.mark.parametrize("part", FITTING)
def test_numbers_that_fit_the_turns_are_taken(part: dict[str, Any]) -> None:
    assert len(tuple(read_texts([archived(TURN, TURN, TURN, **part).encode()]).conversations)) == 1


@pytest.mark.parametrize(("part", "said"), CONTRADICTING)
def test_numbers_that_do_not_fit_the_turns_are_refused(part: dict[str, Any], said: str) -> None:
    with pytest.raises(InvalidRequest) as refused:
        read_texts([archived(TURN, TURN, TURN, **part).encode()])
    assert said in str(refused.value)


@pytest.mark.long
def test_a_large_export_is_read_an_entry_at_a_time() -> None:
    """Memory beside the text itself and what is kept of it, as Python counts it."""
    (chat,) = samples.open_webui()
    padded = chat | {"else": [{"n": n} for n in range(1000)]}
    text = json.dumps([padded] * 60).encode()
    tracemalloc.start()
    try:
        assert len(tuple(read_texts([text]).conversations)) == 120
        assert tracemalloc.get_traced_memory()[1] < len(text)
    finally:
        tracemalloc.stop()


def test_a_file_has_as_many_conversations_as_are_allowed() -> None:
    for text in (json.dumps(samples.open_webui() * 2), archived(TURN) + archived(TURN).removeprefix(HEAD) * 3):
        with pytest.raises(InvalidRequest, match="more than 3 conversations"):
            read_texts([text.encode()], 3)


@pytest.mark.parametrize(
    ("head", "repeated", "tail", "told"),
    sample(
        [
            ("[", "[],", "[]]", "The file has more than 100,000 entries"),
            ('{"mapping": [', "{},", "{}]}", "has more than 1,000,000 values"),
            (HEAD + '{"conversation": [', "[],", "[]]}", "has more than 1,000,000 values"),
            ('{"a": "', '\\"', "", "The file is not JSON"),
            ("[", '"', "]", "The file is not JSON"),
        ]
    ),
    ids=["entries", "values", "values of a line", "escapes", "quotes"],
)
def test_what_is_small_and_becomes_large_is_refused_before_it_does(
    head: str, repeated: str, tail: str, told: str
) -> None:
    with pytest.raises(AssistantError, match=told):
        read_texts([(head + repeated * 1_100_000 + tail).encode()])
