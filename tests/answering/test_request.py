"""One request of an answer: the same draft gives the same bytes, and what does not fit leaves in its order."""

import copy
import json
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from rag_assistant.answering.request import (
    FEWER_PASSAGES,
    WITHOUT_PASSAGES,
    BuiltRequest,
    Draft,
    SearchResult,
    build_request,
)
from rag_assistant.conversations.model_profile import ModelProfile
from rag_assistant.conversations.window import Rules, Window
from rag_assistant.history import HistoryPolicy
from rag_assistant.llm.endpoint import Endpoint
from rag_assistant.records import Conversation, Coverage, Message, RelatedTurn, Source
from rag_assistant.records.errors import QuestionDoesNotFit
from tests.history.conversations import conversations, iteration, policies, turn
from tests.history.examples import many_examples

CONVERSATION = Conversation(1, "Talk", datetime.now(UTC), datetime.now(UTC), 0, 0, 0)
RULES = Rules(5, "window", "trim")
TOOLS: tuple[dict[str, Any], ...] = ({"type": "function", "function": {"name": "look", "parameters": {}}},)


def source(n: int, text: str) -> Source:
    return Source(n, 1, "a.txt", None, 0, len(text), text, 1.0)


def profile(limit: int | None = None, *, quotes: bool = False, tools: bool = False, ratio: float = 1.0) -> ModelProfile:
    endpoint = Endpoint("http://model", None, "m", None, quotes=quotes)
    offered = TOOLS if tools else ()
    return ModelProfile(endpoint, "Be brief.", 6, limit, limit, None, None, ratio, offered)


@st.composite
def drafts(draw: st.DrawFn) -> Draft:
    """A draft of anything that may stand in a request."""
    texts = draw(st.lists(st.text(min_size=1, max_size=60), max_size=4))
    told = draw(st.lists(st.text(min_size=1, max_size=60), max_size=3))
    return Draft(
        question=draw(st.text(min_size=1, max_size=40)),
        window=Window(CONVERSATION, RULES, tuple(draw(conversations())), replace(draw(policies()), turn_numbers=())),
        profile=profile(
            draw(st.none() | st.integers(0, 400)),
            quotes=draw(st.booleans()),
            tools=draw(st.booleans()),
            ratio=draw(st.sampled_from([1.0, 1.3])),
        ),
        found=SearchResult(tuple(source(n, text) for n, text in enumerate(texts, 1)), {"found": len(texts)}),
        recalled=tuple(RelatedTurn(n, text, text, ()) for n, text in enumerate(told, 1)),
        evidence=tuple(replace(source(9, text), cited_in=1) for text in told),
        iterations=tuple(iteration("a")) if draw(st.booleans()) else (),
    )


def bytes_of(built: BuiltRequest | None) -> bytes | None:
    return None if built is None else json.dumps(built.as_request(call_tools=True).as_body("m")).encode()


def built_or_refused(draft: Draft) -> BuiltRequest | None:
    try:
        return build_request(draft)
    except QuestionDoesNotFit:
        return None


@many_examples
@given(drafts())
def test_the_same_draft_gives_the_same_bytes_and_stays_as_it_is(draft: Draft) -> None:
    messages = copy.deepcopy(draft.window.messages)
    once, again = built_or_refused(draft), built_or_refused(draft)
    assert bytes_of(once) == bytes_of(again)
    assert draft.window.messages == messages
    if once is not None:
        assert again is not None
        assert once.figures == again.figures
        assert bytes_of(build_request(once.draft)) == bytes_of(once), "what fits is built once more as it is"


def test_recalled_turns_leave_before_passages_and_passages_before_the_question_is_refused() -> None:
    window = Window(CONVERSATION, RULES, (), HistoryPolicy())
    found = SearchResult(tuple(source(n, f"{n}" * 400) for n in (1, 2)), {"found": 2})
    recalled = (RelatedTurn(1, "x" * 400, "y" * 400, ()),)
    draft = Draft("Why?", window, profile(), found, recalled=recalled)
    whole = build_request(draft)
    seen = []
    for limit in range(sum(whole.fitted.receipt.tokens.values()), 0, -5):
        try:
            kept = build_request(replace(draft, profile=profile(limit))).draft
        except QuestionDoesNotFit:
            break
        seen.append((len(kept.recalled), len(kept.found.sources)))
    assert list(dict.fromkeys(seen)) == [(1, 2), (0, 2), (0, 1), (0, 0)]


def test_passages_that_leave_for_want_of_room_are_told() -> None:
    window = Window(CONVERSATION, RULES, (), HistoryPolicy())
    draft = Draft("Why?", window, profile(), SearchResult(tuple(source(n, f"{n}" * 400) for n in (1, 2)), {"found": 2}))
    whole = sum(build_request(draft).fitted.receipt.tokens.values())
    told = [build_request(replace(draft, profile=profile(limit))).notes for limit in (whole, whole - 5, 40)]
    assert told == [[], [FEWER_PASSAGES], [WITHOUT_PASSAGES]]


def test_what_comes_back_never_takes_the_room_of_a_turn_in_the_window() -> None:
    messages = tuple(message for n in range(4) for message in turn(n))
    draft = Draft("Why?", Window(CONVERSATION, RULES, messages, HistoryPolicy()), profile())
    whole = build_request(draft).fitted.receipt
    recalled = tuple(RelatedTurn(n, "x" * 80, "y" * 80, ()) for n in (1, 2))
    evidence = tuple(replace(source(n, "z" * 80), cited_in=1) for n in (1, 2))
    room = sum(whole.tokens.values()) + 30  # The budget keeps some of it for a notice.
    seen = set()
    for limit in range(room, room + 220):
        built = build_request(replace(draft, recalled=recalled, evidence=evidence, profile=profile(limit)))
        assert built.fitted.receipt.kept_turns == whole.kept_turns
        seen.add((len(built.draft.recalled), len(built.draft.evidence)))
    assert {recalled for recalled, _ in seen} == {0, 1, 2}
    assert {cited for _, cited in seen} == {0, 1, 2}


def test_a_lifted_budget_stays_lifted_and_a_refused_length_stays_refused() -> None:
    messages = [message for n in range(40) for message in turn(n)]
    window = Window(CONVERSATION, RULES, tuple(messages), HistoryPolicy(max_history_turns=None))
    small = replace(profile(60), max_request_tokens=5000)
    draft = Draft("Why?", window, small)
    assert build_request(draft).fitted.history_trimmed
    everything = replace(draft, ignores_budget=True)
    assert not build_request(everything).fitted.history_trimmed
    # Another profile of the same model, as after a refusal, changes neither.
    assert not build_request(replace(everything, profile=replace(small, token_ratio=1.1))).fitted.history_trimmed
    capped = build_request(replace(everything, token_cap=100))
    assert sum(capped.fitted.receipt.tokens.values()) <= 100


@pytest.mark.parametrize("iterations", [(), tuple(iteration("a"))])
def test_passages_stay_once_tools_were_called(iterations: tuple[Message, ...]) -> None:
    window = Window(CONVERSATION, RULES, (), HistoryPolicy())
    draft = Draft(
        "Why?", window, profile(60), SearchResult((source(1, "z" * 900),), {"found": 1}), iterations=iterations
    )
    if iterations:
        with pytest.raises(QuestionDoesNotFit):
            build_request(draft)
    else:
        assert build_request(draft).draft.found.sources == ()


def test_a_section_is_covered_if_a_passage_that_is_sent_has_all_of_it() -> None:
    found = SearchResult((source(1, "x" * 20),), sections=((1, 0, 9), (1, 10, 20), (1, 15, 30), (2, 0, 9)))
    assert found.coverage == Coverage(2, 4)
    assert replace(found, sources=()).coverage == Coverage(0, 4)
