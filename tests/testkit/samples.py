"""Tables of cases of which the first show in large part what all do."""

from collections.abc import Iterable
from typing import Any

import pytest


def sample(cases: Iterable[Any], count: int = 1) -> list[Any]:
    """Return the cases of a parametrised test, of which all but the first run in ``make test-long`` alone."""
    every_time, seldom = (every := list(cases))[:count], every[count:]
    return [*every_time, *(_long(case) for case in seldom)]


def _long(case: Any) -> Any:
    if hasattr(case, "marks"):
        return pytest.param(*case.values, marks=[*case.marks, pytest.mark.long], id=case.id)
    return pytest.param(*(case if isinstance(case, tuple) else (case,)), marks=pytest.mark.long)
