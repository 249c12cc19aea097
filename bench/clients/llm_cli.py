"""The command line ``llm`` (simonw/llm): a question, and one that continues the conversation."""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

HEIGHT = "def height(lamp: str): return '40 m'"
with tempfile.TemporaryDirectory() as folder:
    models = Path(folder) / "extra-openai-models.yaml"
    models.write_text(
        f"- model_id: rag\n  model_name: rag-assistant\n  api_base: {sys.argv[1]}\n  api_key_name: none\n  supports_tools: true\n  supports_schema: true\n"
    )
    program = str(Path(sys.executable).parent / "llm")
    for arguments in (
        ["-m", "rag", "What does the lamp of the lighthouse burn?"],
        ["-c", "And who trims it?"],
        ["-m", "rag", "--functions", HEIGHT, "What does the lamp of the lighthouse burn?"],
        ["-m", "rag", "--schema", "name, hours int", "What does the lamp of the lighthouse burn?"],
        ["-m", "rag", "--no-stream", "-s", "Be brief.", "What does the lamp of the lighthouse burn?"],
    ):
        done = subprocess.run(
            [program, *arguments, "--key", "none"],
            env=dict(os.environ) | {"LLM_USER_PATH": folder},
            capture_output=True,
            text=True,
            check=False,
        )
        print("$ llm", *arguments)
        print((done.stdout + done.stderr).strip())
