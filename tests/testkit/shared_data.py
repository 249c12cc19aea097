"""Real data beside the checkout on some machines; tests that use it are skipped without it."""

import json
from pathlib import Path
from typing import Any

import pytest

SHARED = Path(__file__).resolve().parents[3] / "shared" / "data"


def shared(path: str) -> Path:
    """Return a path below the shared data, or skip the test."""
    found = SHARED / path
    if not found.exists():
        pytest.skip(f"{path} of the shared data is not on this machine")
    return found


def shared_json(path: str) -> Any:
    """Return the content of a shared JSON file, or skip the test."""
    return json.loads(shared(path).read_text(encoding="utf-8"))


def shared_jsonl(path: str) -> list[Any]:
    """Return the lines of a shared JSONL file, or skip the test."""
    return [json.loads(line) for line in shared(path).read_text(encoding="utf-8").split("\n") if line]
