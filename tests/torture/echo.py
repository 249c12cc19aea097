"""A model of which each answer belongs to one question."""

import re
from collections import Counter

from tests.testkit.stub_model import Reply, Seen, StubModel

NUMBER = re.compile(r"Question (\d+)")


class Echo(StubModel):
    """A model whose answer names the question, so that no answer can pass for another one's."""

    def __init__(self, seconds_between: float = 0.0) -> None:
        super().__init__(Reply(seconds_between=seconds_between))

    def next_reply(self, seen: Seen) -> Reply:
        reply = super().next_reply(seen)
        return Reply(answer_to(number_of(seen)), seconds_between=reply.seconds_between)

    def calls(self) -> Counter[int]:
        """Return how often each question came, and forget what came."""
        seen, self.requests = self.requests, []
        return Counter(number_of(one) for one in seen)


def number_of(seen: Seen) -> int:
    """Return the number of the question that a request ends with."""
    found = NUMBER.findall(str(seen.messages[-1]["content"]))
    return int(found[-1]) if found else -1


def answer_to(number: int) -> str:
    """Return the one right answer to a question."""
    return f"Answer {number}: " + " ".join(f"wörd{number}.{n}" for n in range(20)) + " 👩‍👩‍👧 end."
