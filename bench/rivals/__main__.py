"""Measure all rivals: conversations are read as JSON lines, results are written as one JSON list, and nothing else."""

import asyncio
import json
import logging
import sys
import warnings
from importlib.metadata import version

from bench.rivals import adk, autogen, langchain, llamaindex, openai_agents, semantic_kernel, strands
from bench.rivals.measure import measured

LIBRARIES = (langchain, llamaindex, openai_agents, semantic_kernel, autogen, adk, strands)


async def main() -> None:
    """Measure one rival after the other."""
    logging.disable()
    warnings.simplefilter("ignore")
    conversations = [json.loads(line) for line in sys.stdin]
    results = []
    for library in LIBRARIES:
        for rival in library.RIVALS:
            print(f"{rival.name} ...", file=sys.stderr, flush=True)
            results.append(await measured(rival, version(rival.package), conversations))
    print(json.dumps(results))


if __name__ == "__main__":
    asyncio.run(main())
