"""Libraries are used as documented: no private names of theirs, no patched classes, no entries in ``sys.modules``."""

import ast
from collections.abc import Iterator

import pytest

from tests.test_layers import FILES

# What is documented under such a name.
DOCUMENTED = {"os._exit"}


def private_parts(text: str) -> Iterator[str]:
    """Yield what a module uses that is a library's own business."""
    tree = ast.parse(text)
    foreign: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            foreign |= {(one.asname or one.name).partition(".")[0] for one in node.names if _is_foreign(one.name)}
            yield from (one.name for one in node.names if _is_foreign(one.name) and _is_private(one.name))
        elif isinstance(node, ast.ImportFrom) and _is_foreign(node.module or ""):
            foreign |= {one.asname or one.name for one in node.names}
            yield from (f"{node.module}.{one.name}" for one in node.names if _is_private(f"{node.module}.{one.name}"))
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in foreign:
            name = f"{node.value.id}.{node.attr}"
            if (_is_private(node.attr) or name == "sys.modules") and name not in DOCUMENTED:
                yield name
            if isinstance(node.ctx, ast.Store) and node.value.id[0].isupper() and node.attr.islower():
                yield f"{name} ="


def _is_foreign(module: str) -> bool:
    return bool(module) and module.partition(".")[0] not in ("rag_assistant", "__future__", "_typeshed")


def _is_private(name: str) -> bool:
    return any(part.startswith("_") and not part.endswith("__") for part in name.split("."))


def test_no_module_uses_a_private_part_of_a_library() -> None:
    assert [(path, part) for path in FILES for part in private_parts(path.read_text())] == []


@pytest.mark.parametrize(
    "text",
    [
        "from jinja2.runtime import _x",
        "import flask._y",
        "import sys\nsys.modules['x'] = None",
        "import huey\nhuey._z()",
        "from werkzeug.routing import Rule\nRule.match = None",
    ],
)
def test_what_is_private_is_seen(text: str) -> None:
    assert list(private_parts(text))
