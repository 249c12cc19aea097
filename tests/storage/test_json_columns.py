"""JSON in the database: written and read by fast ways, whatever is in it."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_assistant.storage.database import as_json, from_json

ANY_TEXT = st.text(st.characters(), max_size=20)  # Half a character, too.
ANY_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | ANY_TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(ANY_TEXT, inner, max_size=4),
)


@given(ANY_JSON)
def test_a_value_comes_back_as_it_was(value: Any) -> None:
    assert repr(from_json(as_json(value))) == repr(value)


@pytest.mark.parametrize("text", ["NaN", "1e400", '"\\ud83d"', '{"a": 1, "a": 2}', "123456789012345678901234567890"])
def test_what_stands_there_is_read_as_pythons_own_parser_reads_it(text: str) -> None:
    assert repr(from_json(text)) == repr(json.loads(text))
