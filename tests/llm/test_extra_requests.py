"""What is known of the requests besides an answer's own."""

from types import SimpleNamespace
from typing import Any

from rag_assistant.llm.calibration import MAX_UNUSABLE, ExtraRequests
from rag_assistant.llm.endpoint import Endpoint


class Meanwhile:
    """A key during whose comparison another thread learns of another endpoint."""

    def __init__(self, extras: ExtraRequests) -> None:
        self.extras = extras
        self.others = 0

    def __hash__(self) -> int:
        return 1

    def __eq__(self, _other: object) -> bool:
        self.others += 1
        self.extras.learn(Endpoint(f"http://{self.others}/v1", None, "m"), "rewriting", is_usable=False)
        return False


def test_it_can_be_looked_at_and_forgotten_while_others_learn() -> None:
    extras, endpoint = ExtraRequests(), Endpoint("http://here/v1", None, "m")
    for _ in range(MAX_UNUSABLE):
        extras.learn(endpoint, "rewriting", is_usable=False)
    looking: Any = SimpleNamespace(key=Meanwhile(extras))
    assert extras.omitted(looking) == []
    extras.forget(looking)
    assert extras.omitted(endpoint) == ["rewriting"]
    extras.forget(endpoint)
    assert extras.omitted(endpoint) == []
