"""The process of a local model: llama.cpp with its own OpenAI-compatible server on loopback.

``local_model.py`` starts it with the file's path and the context size as arguments, and a key as the first line of
input. It prints one line of JSON (address, context_tokens, takes_tools, parameters, or else problem), and ends when its
input does.
A crash of its native code affects nothing else.
"""

import json
import os
import re
import sys
import tempfile
import urllib.request
from pathlib import Path
from typing import Any

from rag_assistant.runtime.parent import end_with_parent

MAX_THREADS = 8
# After so many tokens of a request it says how far it is.
BATCH_TOKENS = 256
ERROR = re.compile(r"^[\d.]+ E [^:\n]*: (?:error loading model: )?(.*)", re.M)


def main() -> None:
    """Load the model and serve it until the input ends."""
    path, context_tokens = sys.argv[1], int(sys.argv[2])
    key = sys.stdin.readline().strip()
    import xllamacpp

    params = xllamacpp.CommonParams()
    params.model.path = path
    params.model_alias = {Path(path).stem}
    params.hostnames = ["127.0.0.1"]
    params.port = 0
    params.api_keys = [key]
    params.n_parallel = 1  # Each further concurrent answer would need memory of its own.
    params.n_batch = BATCH_TOKENS
    params.n_ctx = context_tokens  # The server uses less if the file says that the model does.
    params.use_jinja = True  # The chat template of the file, with its tools.
    # Threads wait for one another: if another process holds a core they come to a standstill (0.3 to 15 tokens a second
    # written on two busy cores, against 35 with one thread, and 19 to 25 read, against 38 to 57). So one core is left
    # free.
    params.cpuparams.n_threads = max(1, min(MAX_THREADS, os.cpu_count() or 1) - 1)
    params.cpuparams_batch.n_threads = params.cpuparams.n_threads
    params.cache_ram_mib = 0
    params.ui = False
    params.endpoint_slots = False
    params.cors_origins = ""
    with tempfile.TemporaryFile() as errors:
        os.dup2(errors.fileno(), sys.stderr.fileno())  # llama.cpp writes there why it can't load a file.
        try:
            server = xllamacpp.Server(params)
        except RuntimeError as error:
            errors.seek(0)
            print(json.dumps({"problem": reason_in(errors.read().decode(errors="replace")) or str(error)}), flush=True)
            raise
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stderr.fileno())
    print(json.dumps(described(server.listening_address, key)), flush=True)
    sys.stdin.read()


def reason_in(log: str) -> str:
    """Return the first error in llama.cpp's log, without where it occurred."""
    match = ERROR.search(log)
    return match[1] if match else ""


def described(address: str, key: str) -> dict[str, Any]:
    """Return what the server reports about its model."""
    answers = []
    for path in ("/props", "/v1/models"):
        request = urllib.request.Request(address + path, headers={"Authorization": f"Bearer {key}"})
        with urllib.request.urlopen(request) as response:
            answers.append(json.load(response))
    props, models = answers
    return {
        "address": address,
        "context_tokens": props["default_generation_settings"]["n_ctx"],
        "parameters": models["data"][0]["meta"]["n_params"],
        "takes_tools": bool(props.get("chat_template_caps", {}).get("supports_tools")),
    }


if __name__ == "__main__":
    end_with_parent()
    main()
