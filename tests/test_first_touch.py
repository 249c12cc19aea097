"""What is written in C or Rust is touched first by many threads at once, as at a start: none of it ends the process."""

import subprocess
import sys
from pathlib import Path
from textwrap import dedent, indent

import pytest

from tests.testkit.server_process import PROJECT

# What each touches, after its imports; Python has a lock for those.
TOUCHES = {
    "msgspec": """
        from contextlib import suppress
        import msgspec
        for kind in msgspec.Struct.__subclasses__():
            with suppress(msgspec.ValidationError, NameError, TypeError):
                msgspec.convert({}, kind)""",
    "pydantic": """
        from rag_assistant.web.v1.bodies import ChatBody
        return ChatBody.model_validate({"model": "m", "messages": [{"role": "user", "content": "Why?"}]})""",
    "pysqlite3": """
        from sqlalchemy import text
        with database.read() as connection:
            return connection.execute(text("SELECT count(*) FROM turns")).scalar()""",
    "tantivy": """
        from rag_assistant.retrieval.indexes.tantivy_words import TantivyWords
        words = TantivyWords()
        words.change([(1, 1, [(1, "geese greet the keeper")])])
        return [one for one, _ in words.best(["geese"], 5)]""",
    "tokenizers and onnxruntime": """
        return embedder.embed(["Geese greet the keeper."]).round(3).tolist()[0][:5]""",
    "nh3": """
        from rag_assistant.web.markdown.render import render_markdown
        return render_markdown("**Geese** `greet` <script>")""",
    "Stemmer": """
        from rag_assistant.retrieval.terms import query_terms
        return query_terms("Geese greeting keepers, und die Gänse grüßen", ["english", "german"])""",
    "semantic_text_splitter": """
        from rag_assistant.retrieval.chunking import chunk_document
        from rag_assistant.records import ExtractedText
        text = "# Geese\\n\\n" + "They greet the keeper. " * 200
        return len(chunk_document(ExtractedText(text, "text/markdown", markdown=True), 500))""",
    "argon2": """
        from argon2 import PasswordHasher
        hasher = PasswordHasher(1, 64, 1)
        return hasher.verify(hasher.hash("geese"), "geese")""",
    "openai": """
        from rag_assistant.llm.sdk import open_client
        return bool(open_client("http://127.0.0.1:9/v1", None).chat.completions)""",
    "joserfc": """
        from joserfc.jwk import JWKRegistry
        return JWKRegistry.import_key({"kty": "oct", "k": "c2VjcmV0c2VjcmV0c2VjcmV0"}).as_dict()""",
    "psycopg": """
        import psycopg
        return psycopg.conninfo.conninfo_to_dict("host=127.0.0.1 port=1 dbname=x")""",
}
PROGRAM = """
import sys, threading
from pathlib import Path
from rag_assistant.records.base import build_types
from rag_assistant.retrieval.embeddings.minilm import MiniLM
from rag_assistant.storage.database import Database, sqlite_url
{imports}

def touched_by_all(touch):
    together, results = threading.Barrier(20), []
    def run():
        together.wait()
        results.append(repr(touch()))
    threads = [threading.Thread(target=run) for _ in range(20)]
    for one in threads: one.start()
    for one in threads: one.join()
    return len(results), len(set(results))

build_types()  # As a start does.
folder = Path(sys.argv[1])
database, embedder = Database(sqlite_url(folder / "data")), MiniLM(folder / "embedders")
sys.setswitchinterval(1e-6)
"""


@pytest.mark.long
def test_what_many_threads_touch_first_at_once_works_in_each(tmp_path: Path, migrated: Path, embedders: Path) -> None:
    (tmp_path / "data").symlink_to(migrated)
    (tmp_path / "embedders").symlink_to(embedders)
    imports, program = list[str](), ""
    for name, code in TOUCHES.items():
        lines = dedent(code).strip().splitlines()
        imports += [line for line in lines if line.startswith(("from ", "import "))]
        touch = indent("\n".join(line for line in lines if line not in imports), "    ")
        program += f"def touch():\n{touch}\nprint({name!r}, *touched_by_all(touch), flush=True)\n"
    command = [sys.executable, "-X", "faulthandler", "-c", PROGRAM.replace("{imports}", "\n".join(imports)) + program]
    for _ in range(20):
        ended = subprocess.run(
            [*command, str(tmp_path)], cwd=PROJECT, capture_output=True, text=True, timeout=170, check=False
        )
        assert ended.stdout.splitlines() == [f"{name} 20 1" for name in TOUCHES], ended.stdout + ended.stderr
