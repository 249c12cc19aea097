"""The reader of event streams: the data is the same wherever the bytes are cut."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_assistant.llm.sse import MAX_EVENT_BYTES, EventStreamDecoder
from rag_assistant.records.errors import ModelFailed

STREAM = "﻿: a comment\r\ndata: Grüße, 世界 👋🏽\n\nevent: x\ndata:no blank\rdata: two\r\n\r\nid: 7\n\ndata\n\n"
EVENTS = ["Grüße, 世界 👋🏽", "no blank\ntwo", ""]


def read(pieces: list[bytes]) -> list[str]:
    decoder = EventStreamDecoder()
    return [data.decode() for piece in pieces for data in decoder.feed(piece)]


def test_whole_events_give_their_data() -> None:
    assert read([STREAM.encode()]) == EVENTS


def test_every_cut_in_two_gives_the_same() -> None:
    whole = STREAM.encode()
    for cut in range(len(whole) + 1):
        assert read([whole[:cut], whole[cut:]]) == EVENTS, cut


def test_byte_by_byte_gives_the_same() -> None:
    assert read([bytes([byte]) for byte in STREAM.encode()]) == EVENTS


def test_an_unfinished_event_gives_nothing() -> None:
    assert read([b"data: half"]) == []


@given(st.lists(st.text(st.characters(exclude_characters="\r\n", exclude_categories=["Cs"]), min_size=1)), st.data())
def test_any_json_survives_any_cuts(texts: list[str], data: st.DataObject) -> None:
    whole = "".join(f"data: {json.dumps(text, ensure_ascii=False)}\n\n" for text in texts).encode()
    cuts = sorted(data.draw(st.lists(st.integers(0, len(whole)), max_size=6)))
    pieces = [whole[a:b] for a, b in zip([0, *cuts], [*cuts, len(whole)], strict=True)]
    assert [json.loads(found) for found in read(pieces)] == texts


@pytest.mark.parametrize("ending", ["\n", "\r", "\r\n"])
def test_all_three_line_ends_end_a_line(ending: str) -> None:
    assert read([f"data: a{ending}{ending}data: b{ending}{ending}".encode(), b"data: c\n\n"]) == ["a", "b", "c"]


def test_a_line_that_ends_with_both_is_one_line_wherever_they_are_cut() -> None:
    whole = b"event: x\r\ndata: a\r\ndata: b\r\n\r\n"
    for cut in range(len(whole) + 1):
        assert read([whole[:cut], whole[cut:]]) == ["a\nb"], cut


def test_a_bare_return_ends_the_last_event() -> None:
    assert read([b"data: a\r\r"]) == ["a"]
    assert read([b"data: a\r", b"\n\r", b"\ndata: b\r\n\r\n"]) == ["a", "b"]


def test_an_event_without_end_is_given_up() -> None:
    decoder = EventStreamDecoder()
    with pytest.raises(ModelFailed, match="an event of more than"):
        for _ in range(MAX_EVENT_BYTES // 65_536 + 2):
            decoder.feed(b"x" * 65_536)
