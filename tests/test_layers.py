"""The house: imports point down, and each outside library has one home. Read from the code itself."""

import ast
from pathlib import Path

PACKAGE = Path(__file__).resolve().parents[1] / "rag_assistant"

# Lowest first. A module may import from its own group and from every group below, but for strangers (see below).
LAYERS = [
    ("document_records", "records", "errors"),
    (
        "history",
        "prompt",
        "settings",
        "settings_loading",
        "settings_file",
        "validation",
        "left_out_words",
        "turn_view",
        "token_parts",
        "settings_view",
        "receipt_parts",
        "export",
        "model_files",
        "children",
        "data_dir",
    ),
    ("storage", "retrieval", "llm"),
    (
        "collaborators",
        "choices",
        "live",
        "keeping",
        "past",
        "compaction",
        "tools",
        "progress",
        "requesting",
        "rewriting",
        "scoping",
        "searching",
        "receipts",
        "answering",
        "assistant",
        "history_actions",
        "commands",
        "background",
        "uploads",
        "library",
        "page_pictures",
        "folders",
        "doctor",
    ),
    ("web", "cli"),
    ("factory",),
    ("serve",),
]
STRANGERS = ("storage", "retrieval", "llm")
PURE = frozenset(
    "document_records records errors history prompt settings settings_loading collaborators choices left_out_words "
    "turn_view token_parts settings_view receipt_parts export past validation".split()
)
# What a pure module may import besides our own pure ones.
HARMLESS = frozenset(
    "__future__ ast bisect collections copy dataclasses datetime difflib functools itertools json math re typing "
    "pydantic pydantic_core".split()
)
HOMES = {
    "sqlalchemy": ("storage",),
    "alembic": ("storage",),
    "openai": ("llm",),
    "httpx2": ("llm",),
    "httptools": ("llm",),
    "xllamacpp": ("llm",),
    "chromadb": ("retrieval",),
    "kreuzberg": ("retrieval",),
    "pypdfium2": ("retrieval",),
    "onnxruntime": ("retrieval",),
    "tokenizers": ("retrieval",),
    "flask": ("web", "cli", "factory"),
    "markdown_it": ("web", "retrieval"),
    "nh3": ("web",),
    "flask_compress": ("web",),
    "gunicorn": ("serve",),
    "huey": ("background",),
}


def part_of(path: Path) -> str:
    """Return the folder or the module of the package to which a file belongs."""
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def imports_of(path: Path) -> list[str]:
    """Return what a file imports, but for what is only there for the type checker or loaded where it is used."""
    tree = ast.parse(path.read_text())
    only_types = {
        id(inner)
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
        for inner in ast.walk(node)
    }
    found = []
    for node in ast.walk(tree):
        if id(node) in only_types:
            continue
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            found.append(node.module or "")
    return found


FILES = [path for path in PACKAGE.rglob("*.py") if path != PACKAGE / "__init__.py"]
RANK = {name: rank for rank, layer in enumerate(LAYERS) for name in layer}


def test_every_module_has_its_layer() -> None:
    assert {part_of(path) for path in FILES} == set(RANK)


def test_imports_point_down_and_strangers_do_not_meet() -> None:
    wrong = []
    for path in FILES:
        own = part_of(path)
        for name in imports_of(path):
            if not name.startswith("rag_assistant."):
                continue
            other = name.split(".")[1]
            meets_stranger = own in STRANGERS and other in STRANGERS and own != other
            if RANK[other] > RANK[own] or meets_stranger:
                wrong.append(f"{path.relative_to(PACKAGE)} imports {name}")
    assert wrong == []


def test_each_library_has_its_home() -> None:
    wrong = []
    for path in FILES:
        for name in imports_of(path):
            homes = HOMES.get(name.split(".")[0])
            if homes and part_of(path) not in homes:
                wrong.append(f"{path.relative_to(PACKAGE)} imports {name}")
    assert wrong == []


def test_what_is_pure_imports_nothing_that_acts() -> None:
    wrong = []
    for path in FILES:
        if part_of(path) not in PURE:
            continue
        for name in imports_of(path):
            root = name.split(".")
            pure = root[0] in HARMLESS or (root[0] == "rag_assistant" and (len(root) == 1 or root[1] in PURE))
            if not pure:
                wrong.append(f"{path.relative_to(PACKAGE)} imports {name}")
    assert wrong == []


def test_history_is_importable_without_the_rest() -> None:
    import subprocess
    import sys

    code = "import sys, rag_assistant.history; print([m for m in ('flask', 'sqlalchemy', 'numpy') if m in sys.modules])"
    assert subprocess.check_output([sys.executable, "-c", code], text=True, cwd=PACKAGE.parent).strip() == "[]"
