"""The process of the built-in model: llama.cpp with its own OpenAI-compatible server on loopback.

Started by ``builtin.py`` with the model's path as argument and a key as the first line of input. Prints its address as
one line, and ends when its input does. Native code that dies here takes nothing else with it.
"""

from __future__ import annotations

import sys

# Two slots of 2,048 tokens: a second question does not wait for the first, and a prompt of ours fits (see prompt.py).
SLOTS = 2
TOKENS_PER_SLOT = 2048


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
    params.n_parallel = SLOTS
    params.n_ctx = SLOTS * TOKENS_PER_SLOT
    params.cpuparams.n_threads = int(sys.argv[2])
    params.cache_ram_mib = 0
    params.n_gpu_layers = 0
    params.ui = False
    params.endpoint_slots = False
    params.cors_origins = ""
    server = xllamacpp.Server(params)
    print(server.listening_address, flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    main()
