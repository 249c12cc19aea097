"""Every endpoint answers as it was recorded.

``GOLDEN_RECORD=1 pytest tests/golden`` records anew; the difference is then to be read before it is committed.
"""

import difflib
import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from flask import Flask
from flask.testing import FlaskClient

from tests.golden.player import Player
from tests.golden.scenarios import SCENARIOS
from tests.testkit.stub_model import StubModel

EXPECTED = Path(__file__).parent / "expected"
MAX_LINES_SHOWN = 60


@pytest.fixture
def environment(environment: dict[str, str], request: pytest.FixtureRequest) -> dict[str, str]:
    return environment | ({"RETRIEVAL_MODE": "agent"} if "tools" in request.node.name else {})


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: str(scenario.__name__))
def test_every_endpoint_answers_as_recorded(
    client: FlaskClient, stub: StubModel, scenario: Callable[[Player], None]
) -> None:
    player = Player(client, stub)
    scenario(player)
    file = EXPECTED / f"{scenario.__name__}.json"
    recorded = player.recorded()
    if os.environ.get("GOLDEN_RECORD"):
        file.write_text(recorded)
    expected = file.read_text().splitlines()
    difference = list(difflib.unified_diff(expected, recorded.splitlines(), "recorded", "now", lineterm="", n=4))
    assert not difference, "\n".join(difference[:MAX_LINES_SHOWN])


def test_no_endpoint_is_forgotten(app: Flask) -> None:
    steps = [step["request"] for file in EXPECTED.glob("*.json") for step in json.loads(file.read_text())]
    urls = app.url_map.bind("localhost")
    visited = set()
    for method, _, path in (step.partition(" ") for step in steps):
        path = path.partition("?")[0]
        if urls.test(path, method):
            visited.add((method, urls.match(path, method, return_rule=True)[0].rule))
    api = {
        (method, rule.rule)
        for rule in app.url_map.iter_rules()
        for method in (rule.methods or set()) - {"HEAD", "OPTIONS"}
        if rule.rule.startswith("/api/") or rule.rule.endswith("z")
    }
    # Their answers hold what differs from process to process: a token, a key, salts and a signature.
    assert api - visited == {
        ("GET", "/api/settings/version"),
        ("GET", "/api/conversations/<int:conversation_id>/receipts"),
    }
