"""Send a turn's request again, to the current endpoint, and compare the answers. Nothing is stored."""

from difflib import unified_diff

from msgspec import Struct

from rag_assistant.llm.calls import ModelCall
from rag_assistant.llm.client import collect
from rag_assistant.llm.models import LanguageModels
from rag_assistant.records import ModelRequest
from rag_assistant.records.errors import InvalidRequest, ReceiptNotFound
from rag_assistant.retrieval.sentences import split_text
from rag_assistant.storage.conversations.turns import TurnStore


class Replay(Struct, frozen=True):
    """The answer of a turn, and the current answer to the same request; ``difference`` is none if they are equal."""

    turn_id: int
    answered_by: str | None
    answer: str
    replayed_by: str | None
    replayed: str
    difference: list[str]


def replay(turn_id: int, turns: TurnStore, models: LanguageModels) -> Replay:
    """Send a turn's last request again. Raises ReceiptNotFound, InvalidRequest if it was erased, or a ModelError."""
    turn, receipt = turns.get(turn_id), turns.receipt(turn_id)
    if receipt is None or "request" not in receipt:
        raise ReceiptNotFound(turn_id)
    if "erased_turns" in receipt:
        raise InvalidRequest(
            f"Part of what turn {turn_id} sent was erased since, so its exact request can't be sent again."
        )
    models.refuse_beyond_limits()
    call = ModelCall()
    endpoint = models.endpoint(call)
    text, reply = collect(models.stream(endpoint, ModelRequest.from_body(receipt["request"]), call))
    calls = [f"{call['function']['name']} {call['function']['arguments']}" for call in reply.tool_calls]
    replayed = "\n".join(filter(None, (text, *calls)))
    difference = list(unified_diff(_lines(turn.answer), _lines(replayed), "then", "now", lineterm="", n=1))
    return Replay(turn_id, turn.model, turn.answer, endpoint.model, replayed, difference)


def _lines(answer: str) -> list[str]:
    return [sentence for line in answer.split("\n") for sentence in split_text(line)]
