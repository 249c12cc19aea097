"""The house: imports point down, no circles, and each outside library has one home. Read from the code itself."""

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from itertools import combinations
from pathlib import Path

import pytest

PACKAGE = Path(__file__).resolve().parents[1] / "rag_assistant"

# Lowest first. A room may import from every floor below it, and on its own floor from what stands before it.
FLOORS = [
    ("records",),
    ("history", "settings"),
    ("runtime", "files", "storage", "extraction", "retrieval", "llm"),
    ("conversations", "documents", "accounts", "answering"),
    ("factory", "services"),
    ("web",),
    ("cli", "server", "__main__"),
]
RANK = {room: rank for rank, room in enumerate(room for floor in FLOORS for room in floor)}
# Rooms that may not know each other: what is read, searched, asked and kept is brought together above them.
STRANGERS = {
    *map(frozenset, combinations(("storage", "extraction", "retrieval", "llm"), 2)),
    *map(frozenset, combinations(("conversations", "documents", "accounts"), 2)),
    frozenset(("answering", "documents")),
    frozenset(("history", "settings")),
}
PURE = (
    *(
        "records",
        "history",
        "web.i18n.languages",
        "accounts.admission",
        *(f"settings.{name}" for name in "conversations declaration documents people schema server".split()),
    ),
    *(
        "conversations.model_profile",
        "conversations.pictures",
        "conversations.prompts",
        "conversations.window",
        "answering.request",
    ),
    *(
        "answering.quoting",
        "conversations.exchange.archive",
        "conversations.exchange.products",
        "conversations.summary_lines",
        "retrieval.claims",
        "retrieval.disagreements",
        "retrieval.dates",
        "retrieval.excerpts",
        "retrieval.follow_up",
        "retrieval.hybrid",
        "retrieval.languages",
        "retrieval.leads",
        "retrieval.sentences",
        "retrieval.tables",
        "retrieval.tokenize",
        "retrieval.versions",
        "web.mcp.protocol",
    ),
)
# What a pure module may import besides our own pure ones.
# With pkgutil, a module reads words that lie beside it.
HARMLESS = frozenset(
    "__future__ ast base64 binascii bisect collections contextlib copy datetime difflib functools hashlib heapq "
    "ipaddress itertools json math msgspec pkgutil re tomllib types typing typing_extensions pydantic pydantic_core "
    "unicodedata".split()
)
HOMES = {
    "sqlalchemy": ("storage",),
    "alembic": ("storage",),
    "openai": ("llm",),
    "authlib": ("accounts",),
    "joserfc": ("accounts",),
    "httpx2": ("llm", "accounts", "cli", "runtime", "files"),
    "xllamacpp": ("llm",),
    "chromadb": ("retrieval",),
    "onnxruntime": ("retrieval",),
    "tokenizers": ("retrieval",),
    "Stemmer": ("retrieval",),
    "kreuzberg": ("extraction",),
    "xlrd": ("extraction",),
    "olefile": ("extraction",),
    "pypdfium2": ("extraction",),
    "rapidocr": ("extraction",),
    "PIL": ("extraction",),
    "babel": ("web",),
    "flask": ("web",),
    "markdown_it": ("web", "retrieval"),
    "nh3": ("web",),
    "waitress": ("server",),
    "botocore": ("files",),
    "argon2": ("accounts",),
    "prometheus_client": ("runtime",),
    "mcp": ("llm",),
    "anyio": ("llm",),
}
FILES = [path for path in PACKAGE.rglob("*.py") if path != PACKAGE / "__init__.py"]


def name_of(path: Path) -> str:
    """Return the dotted name of a module below the package, such as ``history.window``."""
    return ".".join(path.relative_to(PACKAGE).with_suffix("").parts).removesuffix(".__init__")


MODULES = {name_of(path) for path in FILES}
PACKAGES = sorted({path.parent for path in FILES if (path.parent / "__init__.py").exists()})


def room_of(path: Path) -> str:
    """Return the folder or the module of the package to which a file belongs."""
    return name_of(path).split(".")[0]


def is_pure(name: str) -> bool:
    """Tell whether a module is one of those that only compute."""
    return any(name == pure or name.startswith(f"{pure}.") for pure in PURE)


def statements(body: list[ast.stmt], *, types: bool) -> Iterator[ast.stmt]:
    """Yield these statements and those inside them; those that are there for types alone only with ``types``."""
    for node in body:
        for_types = isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"
        if for_types and not types:
            continue
        yield node
        # Most of a tree are expressions, and no statement is inside one.
        for inner in (node, *getattr(node, "handlers", ()), *getattr(node, "cases", ())):
            for part in ("body", "orelse", "finalbody"):
                yield from statements(getattr(inner, part, []), types=types)


@cache
def imports_of(path: Path, *, types: bool = False) -> frozenset[str]:
    """Return what a file imports, by full name, at the top or late; for types alone only with ``types``."""
    found: set[str] = set()
    for node in statements(ast.parse(path.read_text()).body, types=types):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            found |= {node.module or "", *(f"{node.module}.{alias.name}" for alias in node.names)}
    return frozenset(found)


@cache
def own_imports(path: Path, *, types: bool = False) -> frozenset[str]:
    """Return the modules of ours that a file imports, by their names below the package."""
    imported = imports_of(path, types=types)
    names = (name.removeprefix("rag_assistant.") for name in imported if name.startswith("rag_assistant."))
    return frozenset(name for name in names if name in MODULES)


def test_the_plan_of_the_house_is_kept() -> None:
    assert {room_of(path) for path in FILES} == set(RANK)
    assert len(FLOORS) <= 7
    assert len(RANK.keys() - {"__main__"}) <= 19


def test_every_room_says_what_it_is_for() -> None:
    unsaid = [
        str(room) for room in PACKAGES if ast.get_docstring(ast.parse((room / "__init__.py").read_text())) is None
    ]
    assert unsaid == []


def test_imports_point_down_and_strangers_do_not_meet() -> None:
    wrong = []
    for path in FILES:
        own = room_of(path)
        for other in {name.split(".")[0] for name in own_imports(path)} - {own}:
            if RANK[other] >= RANK[own] or frozenset((own, other)) in STRANGERS:
                wrong.append(f"{path.relative_to(PACKAGE)} imports {other}")
    assert wrong == []


@pytest.mark.parametrize("package", PACKAGES, ids=lambda path: name_of(path / "__init__.py"))
def test_there_is_no_circle_inside_a_package_not_even_of_types(package: Path) -> None:
    files = [path for path in FILES if package in path.parents]
    arrows = {name_of(path): own_imports(path, types=True) - {name_of(path)} for path in files}
    while leaves := [name for name, targets in arrows.items() if not targets & arrows.keys()]:
        for name in leaves:
            del arrows[name]
    assert arrows == {}, "these import each other in a circle, or stand above one"


def test_each_library_has_its_home() -> None:
    wrong = []
    for path in FILES:
        for library in {name.split(".")[0] for name in imports_of(path)} & HOMES.keys():
            if room_of(path) not in HOMES[library]:
                wrong.append(f"{path.relative_to(PACKAGE)} imports {library}")
    assert wrong == []


def test_no_child_inherits_our_environment_where_the_keys_are() -> None:
    calls = [
        (path.relative_to(PACKAGE), {word.arg: ast.unparse(word.value) for word in node.keywords})
        for path in FILES
        # That is a program in a child, and passes on what it was given.
        if path.name != "parent.py" and "subprocess" in (code := path.read_text())
        for node in ast.walk(ast.parse(code))
        if isinstance(node, ast.Call) and re.match(r"subprocess\.\w", ast.unparse(node.func))
    ]
    assert len(calls) > 3
    assert [path for path, words in calls if not words.get("env", "").startswith("plain_environment()")] == []


def test_what_is_pure_imports_nothing_that_acts() -> None:
    wrong = []
    for path in FILES:
        if is_pure(name_of(path)):
            acting = {name for name in own_imports(path) if not is_pure(name)}
            foreign = {name.split(".")[0] for name in imports_of(path)} - HARMLESS - {"rag_assistant"}
            wrong += [f"{path.relative_to(PACKAGE)} imports {name}" for name in acting | foreign]
    assert wrong == []


def test_history_is_importable_without_the_rest() -> None:
    code = "import sys, rag_assistant.history; print([m for m in ('flask', 'sqlalchemy', 'numpy') if m in sys.modules])"
    assert subprocess.check_output([sys.executable, "-c", code], text=True, cwd=PACKAGE.parent).strip() == "[]"


@cache
def at_start() -> tuple[list[str], list[str]]:
    """Return which modules a start loads, and which bodies of requests it compiles."""
    code = (
        "import sys, rag_assistant.web\nprint(*sys.modules)\nfrom pydantic import BaseModel\n"
        "def below(kind):\n    return {kind}.union(*map(below, kind.__subclasses__()))\n"
        "print(*(one.__name__ for one in below(BaseModel) if one.__pydantic_complete__))"
    )
    told = subprocess.check_output([sys.executable, "-c", code], text=True, cwd=PACKAGE.parent)
    loaded, compiled = (line.split() for line in told.splitlines())
    return loaded, compiled


def test_what_no_start_needs_is_not_loaded_before_it_is_used() -> None:
    loaded, _ = at_start()
    assert "sqlalchemy.dialects.sqlite" in loaded
    late = "alembic botocore chromadb onnxruntime openai psycopg sqlalchemy.dialects.postgresql tokenizers"
    assert set(late.split()).isdisjoint(loaded)


def test_of_the_bodies_of_requests_none_is_compiled_before_it_is_used() -> None:
    _, compiled = at_start()
    assert compiled == []
