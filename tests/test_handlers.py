"""``except ... as name`` deletes ``name`` when the handler ends, so it may not be a name that the function uses."""

import ast
from collections.abc import Iterator
from itertools import chain

import pytest

from tests.test_layers import FILES

SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)


def deleted_names(text: str) -> Iterator[tuple[int, str]]:
    """Yield the line and name of each handler whose name its function also uses outside of such handlers."""
    tree = ast.parse(text)
    for scope in [tree, *(node for node in ast.walk(tree) if isinstance(node, SCOPES))]:
        handlers, used = set[tuple[int, str]](), parameters(scope)
        for node in ast.iter_child_nodes(scope):
            collect(node, frozenset(), handlers, used)
        yield from sorted((line, name) for line, name in handlers if name in used)


def collect(node: ast.AST, held: frozenset[str], handlers: set[tuple[int, str]], used: set[str]) -> None:
    """Collect the handlers of a scope, and the names that it uses where no handler holds them."""
    if isinstance(node, SCOPES):
        used |= free_names(node)  # Whenever it is called: perhaps once the handler is over.
        return
    if isinstance(node, ast.ExceptHandler) and node.name is not None:
        handlers.add((node.lineno, node.name))
        held |= {node.name}
    used |= {name for name in names(node) if name not in held}
    for child in ast.iter_child_nodes(node):
        collect(child, held, handlers, used)


def names(node: ast.AST) -> set[str]:
    if isinstance(node, (ast.Global, ast.Nonlocal)):
        return set(node.names)
    return {node.id} if isinstance(node, ast.Name) else set()


def parameters(scope: ast.AST) -> set[str]:
    return {one.arg for one in ast.walk(scope.args) if isinstance(one, ast.arg)} if hasattr(scope, "args") else set()


def free_names(scope: ast.AST) -> set[str]:
    """Return the names that a scope uses and doesn't bind."""
    nodes = list(ast.walk(scope))
    stored = {one.id for one in nodes if isinstance(one, ast.Name) and not isinstance(one.ctx, ast.Load)}
    handled = {one.name for one in nodes if isinstance(one, ast.ExceptHandler)}
    return set(chain.from_iterable(map(names, nodes))) - parameters(scope) - stored - handled


@pytest.mark.long
def test_no_handler_deletes_a_name_that_its_function_uses() -> None:
    assert [(path, *found) for path in FILES for found in deleted_names(path.read_text())] == []


@pytest.mark.parametrize(
    "text",
    [
        "def f(e):\n while True:\n  try:\n   return g(e)\n  except OSError as e:\n   pass",
        "def f():\n e = 1\n try:\n  pass\n except OSError as e:\n  pass\n return e",
        "def f(calls):\n try:\n  pass\n except OSError as e:\n  calls.append(lambda: e)",
        "def f():\n global e\n try:\n  pass\n except OSError as e:\n  pass",
        "try:\n pass\nexcept OSError as e:\n pass\ndef f():\n return e",
    ],
)
def test_a_name_that_is_deleted_and_used_is_seen(text: str) -> None:
    assert [name for _, name in deleted_names(text)] == ["e"]


@pytest.mark.parametrize(
    "text",
    [
        "def f():\n try:\n  pass\n except OSError as e:\n  g(e)\n except ValueError as e:\n  raise g(e) from e",
        "def f():\n try:\n  pass\n except OSError as e:\n  g(e)\ndef g(e):\n return e",
    ],
)
def test_a_name_of_handlers_alone_is_none(text: str) -> None:
    assert list(deleted_names(text)) == []
