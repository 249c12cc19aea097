"""(g) The storage of a turn besides its text, for each window, early and late in a conversation."""

import io
import logging
import tempfile
from pathlib import Path

from bench.aims import Figure, Figures
from bench.stage import application, wait_until_ready
from tests.testkit.stub_model import StubModel
from tests.testkit.talk import Talk

WINDOWS = (5, 20)


def main() -> Figures:
    """Print the bytes of a turn at turns 26 to 60, and without recalled turns at 41 to 60 and at 181 to 200."""
    logging.disable(logging.WARNING)
    print("| window | turns 26 to 60 | without recall: 41 to 60 | 181 to 200 |\n|---|---|---|---|")
    usual, flat = [], []
    for window in WINDOWS:
        _, early = told(window, 25, 35)
        _, middle, _, late = told(window, 40, 20, 120, 20, HISTORY_RECALL="0")
        print(f"| {window} | {early:,.0f} | {middle:,.0f} | {late:,.0f} |", flush=True)
        usual.append(early / 1000)
        flat.append(late / middle)
    return {"stored": Figure(tuple(usual[:1]), f"{usual[1]:.1f} at 20 turns"), "stored_flat": Figure(tuple(flat[:1]))}


def told(window: int, *turns: int, **environment: str) -> list[float]:
    """Continue a conversation by these numbers of turns; return the bytes stored per turn each time."""
    stub = StubModel()
    with tempfile.TemporaryDirectory() as folder, application(Path(folder), stub, **environment) as (app, services):
        talk = Talk(app.test_client(), stub, services.database, window)
        services.library.accept(io.BytesIO(talk.book.encode()), "book.md")
        wait_until_ready(services)
        found = [talk.go_on(some) for some in turns]
    stub.close()
    return found
