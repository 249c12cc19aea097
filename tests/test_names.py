"""The code speaks the field's words: a name says what a thing is, not what happened to it."""

import ast
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parent.parent / "rag_assistant"
# Names of ours, with what to say instead. Fields of classes are not looked at: the API has their names.
NOT_BUT = {
    "asked": "question",
    "conclude": "finish",
    "courtesy": "rate limit",
    "doing": "operation",
    "far_past": "older turns",
    "found": "passages, match, row: what it is",
    "given_back": "released",
    "kept": "turns, messages: what it is",
    "known": "cached, response, model: what it is",
    "leads": "lead-ins",
    "leans_on": "follow-up context",
    "made": "row, html: what it is",
    "nearness": "similarity",
    "over": "for_person",
    "said": "messages, text: what it is",
    "settle": "flush",
    "theirs": "for_person",
    "told": "fields, message: what it is",
    "unripe": "pending",
}
PREFIXES = ("MOST_", "LONGEST_", "LEAST_", "SHORTEST_")


def names_in(path: Path) -> list[tuple[str, int]]:
    """Return the names that a file gives, each with its line: functions, classes, parameters and variables."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    fields = {id(target) for one in ast.walk(tree) if isinstance(one, ast.ClassDef) for target in _targets(one)}
    names = []
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            names.append((node.name, node.lineno))
        elif isinstance(node, ast.arg):
            names.append((node.arg, node.lineno))
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) and id(node) not in fields:
            names.append((node.id, node.lineno))
    return names


def _targets(one: ast.ClassDef) -> list[ast.expr]:
    return [line.target for line in one.body if isinstance(line, ast.AnnAssign)]


@pytest.mark.parametrize("room", sorted(path.name for path in PACKAGE.iterdir() if path.name != "__pycache__"))
def test_names_are_the_words_of_the_field(room: str) -> None:
    files = [PACKAGE / room] if room.endswith(".py") else sorted((PACKAGE / room).rglob("*.py"))
    wrong = [
        f"{path.relative_to(PACKAGE)}:{line} {name}: rather {NOT_BUT.get(name, 'MAX_ or MIN_')}"
        for path in files
        for name, line in names_in(path)
        if name in NOT_BUT or name.startswith(PREFIXES)
    ]
    assert wrong == []
