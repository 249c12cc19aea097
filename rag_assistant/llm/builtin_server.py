"""The process of the built-in model: llama.cpp with its own OpenAI-compatible server on loopback.

Started by ``builtin.py`` with the model's path as argument and a key as the first line of input. Prints its address as
one line, and ends when its input does. Native code that dies here takes nothing else with it.
"""

from __future__ import annotations

import os
import sys

# One answer at a time: each further slot costs 47 MB for its keys and values. Keeping those in 8 bits instead of 16
# would save as much, but then 20 of 24 answers held the right fact, not 23 (docs/benchmarks.md).
CONTEXT_TOKENS = 2048
MAX_THREADS = 4


def main() -> None:
    """Load the model, serve it, and wait for the end of the input."""
    key = sys.stdin.readline().strip()
    import xllamacpp

    params = xllamacpp.CommonParams()
    params.model.path = sys.argv[1]
    params.model_alias = {"smollm2-135m-instruct"}
    params.hostnames = ["127.0.0.1"]
    params.port = 0
    params.api_keys = [key]
    params.n_parallel = 1
    params.n_ctx = CONTEXT_TOKENS
    # Threads that write a token wait for one another: where another process holds a core they come to a standstill
    # (0.3 to 15 tokens a second on two busy cores, against 35 with one thread). So writing leaves one core alone.
    cores = min(MAX_THREADS, os.cpu_count() or 1)
    params.cpuparams.n_threads = max(1, cores - 1)
    params.cpuparams_batch.n_threads = cores
    params.cache_ram_mib = 0
    params.cache_prompt = False  # A prompt that is half cached is computed in other steps, and answered differently.
    params.n_gpu_layers = 0
    params.ui = False
    params.endpoint_slots = False
    params.cors_origins = ""
    server = xllamacpp.Server(params)
    print(server.listening_address, flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    main()
