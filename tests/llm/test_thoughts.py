"""What a model thinks is parted from what it answers, however both are cut into pieces."""

import pytest

from rag_assistant.llm.calls import ModelCall
from rag_assistant.llm.client import ModelClient, collect
from rag_assistant.llm.endpoint import Endpoint
from rag_assistant.llm.reader import AnswerReader, ThoughtFilter
from rag_assistant.records import ModelRequest
from tests.testkit.stub_model import Reply, StubModel
from tests.web.conftest import timeouts

REQUEST = ModelRequest(({"role": "user", "content": "Why?"},))


def parted(text: str, size: int, *, is_opened: bool = False) -> tuple[str, int]:
    """Return the answer in a text that comes in pieces of a size, and how many characters were thoughts."""
    thoughts = ThoughtFilter(is_opened)
    shown = "".join(thoughts.feed(text[n : n + size]) for n in range(0, len(text), size)) + thoughts.rest()
    return shown, thoughts.chars


@pytest.mark.parametrize("size", [1, 3, 7, 1000])
@pytest.mark.parametrize(
    ("text", "answer", "chars"),
    [
        ("<think>secret plan</think>\n\nNine [1].", "Nine [1].", 11),
        ("\n<thinking>a < b</thinking><think>again</think> Nine.", "Nine.", 10),
        ("[THINK]hm[/THINK]Nine.", "Nine.", 2),
        ("<think>\n\n</think>\n\nNine.", "Nine.", 2),
        ("\n\nNine.", "\n\nNine.", 0),
        ("<thin ice> is thin.", "<thin ice> is thin.", 0),
        ("Write <think>x</think> so.", "Write <think>x</think> so.", 0),
        ("<", "<", 0),
        (
            "<|channel|>analysis<|message|>plan<|end|><|start|>assistant<|channel|>final<|message|>9.<|return|>",
            "9.",
            29,
        ),
        ("<|start|>assistant<|channel|>final<|message|>Nine.<|return|>", "Nine.", 0),
        ("<|channel>thought\nplan\n<channel|>Nine.", "Nine.", 6),
        ("Nine.<|im_end|>\n<|endoftext|>", "Nine.", 0),
        ("ChatML ends with <|im_end|> and a < b", "ChatML ends with <|im_end|> and a < b", 0),
        ("Write <|im_", "Write <|im_", 0),
    ],
)
def test_thoughts_at_the_beginning_are_no_part_of_the_answer(text: str, answer: str, chars: int, size: int) -> None:
    assert parted(text, size) == (answer, chars)


def test_thoughts_without_an_end_are_no_answer() -> None:
    shown, chars = parted("<think>secret plan", 5)
    assert (shown, chars > 0) == ("", True)


@pytest.mark.parametrize("size", [1, 1000])
def test_where_the_prompt_opens_the_tag_its_end_alone_parts_them(size: int) -> None:
    assert parted("secret plan</think>\n\nNine.", size, is_opened=True) == ("Nine.", 11)
    assert parted("Nine, without a thought.", size, is_opened=True) == ("Nine, without a thought.", 0)


def test_thoughts_in_a_field_of_their_own_leave_the_answer_streamed() -> None:
    reader = AnswerReader(thinks_at_once=True)
    assert reader.text_of({"choices": [{"delta": {"reasoning_content": "hm", "content": None}}]}) == ""
    assert reader.text_of({"choices": [{"delta": {"content": "Nine"}}]}) == "Nine"
    assert reader.reply().thought


def test_a_model_that_closes_what_it_did_not_open_is_known_from_then_on(stub: StubModel) -> None:
    client = ModelClient(lambda: timeouts(connect=5.0, first_token=20.0, token=20.0, answer=60.0))
    client.warm_up()  # Or the first question would wait for the SDK to be loaded.

    def answer(model: str) -> str:
        stub.replies.append(Reply("secret plan </think> Nine."))
        return collect(client.stream(Endpoint(stub.url, None, model), REQUEST, ModelCall()))[0]

    assert answer("some-model") == "secret plan </think> Nine."
    assert answer("some-model") == "Nine."
    assert answer("deepseek-r1:8b") == "Nine."
    client.close()
