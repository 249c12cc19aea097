"""Every regular expression of the package, how it is used, and the texts that are the worst for it."""

import ast
import importlib
import inspect
import pkgutil
import re
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any, NamedTuple

import rag_assistant

# Each method, and the one that takes as long. Texts have a ``split``, too, so it isn't known to be a table's.
METHODS = {name: name for name in ("search", "match", "fullmatch")} | dict.fromkeys(
    ("sub", "subn", "split", "findall", "finditer"), "finditer"
)
# Where an inline pattern has its flags, if they aren't named.
FLAGS_AT = {"sub": 4, "subn": 4, "split": 3}
# Made of a translator's sentences, which the test feeds apart, and of literal texts alone, for constants that it sees.
MADE_OF_TEXTS = frozenset({"rag_assistant.web.i18n.catalogs", "rag_assistant.web.pages.history"})
MAX_DEPTH = 4
# What people write, and what Markdown, tables and citations are made of.
LETTERS = (
    *(" ", "\t", "\n", "a", "A", "é", "世", "0", "*", "-", "_", "#", "`", "~", "|", "[", "]", "(", ")", "<", ">", "{"),
    *('"', "'", ".", ",", ":", ";", "!", "/", "\\", "@", "=", "&", "%", "€", "\0", "\u3010", "\u3002", "\ue200"),
    *("a ", "A ", "1 ", "- ", "* ", "| ", ". ", "a.", "a-", "a,", "A.", "a1", "1,", "[1] ", "\n\n", "\n- ", "\n1. "),
    *("\n|", "a\n", " \n", "|-", "[^", "](", "<!--", "```\n", "> ", "a1-", "It opens at nine. ", "No. 3, [1]. "),
)
ENDS = ("", "\0", "\n!")
# A character of each class is looked for among these, from several beginnings.
SAMPLES = " aA0é世\n\t.-_*|,#'\"([<`:!?bB1z/=@]>\\{~+&%€ß\ue200"
VARIANTS = 2
_parser: Any = importlib.import_module("re._parser")


class Pattern(NamedTuple):
    """A compiled pattern, the methods that are called on it, and its name."""

    compiled: re.Pattern[Any]
    methods: tuple[str, ...]
    name: str


class Text(NamedTuple):
    """A text of any length: how it begins, what is repeated, and how it ends."""

    begin: str
    repeated: str
    end: str

    def of(self, chars: int) -> str:
        """Return the text with about this many characters."""
        return self.begin + self.repeated * (chars // len(self.repeated)) + self.end


def every_pattern() -> Iterator[Pattern]:
    """Yield the patterns in modules, classes and tables, made by functions without arguments, and written inline."""
    methods: dict[re.Pattern[Any], set[str]] = {}
    names: dict[re.Pattern[Any], str] = {}
    for module in _modules():
        tree, scope = _tree(module), dict(vars(module))
        of_tables = {
            one.attr
            for one in _attributes(tree)
            if one.attr != "split" and _is_method(one) and _is_local(one.value, scope)
        }
        for name, compiled, in_table in _kept(module):
            names.setdefault(compiled, f"{module.__name__}.{name}")
            methods.setdefault(compiled, set()).update(of_tables if in_table else ())
        for node, compiled in _called(tree, scope):
            names.setdefault(compiled, f"{module.__name__}, line {node.lineno}")
            methods.setdefault(compiled, set()).add(node.attr)
    for compiled, used in methods.items():
        yield Pattern(compiled, tuple(sorted({METHODS[one] for one in used})) or ("finditer",), names[compiled])


def made_in_functions() -> Iterator[str]:
    """Yield where a pattern is made of values that only its function knows, so that no test can know it."""
    for module in _modules():
        if module.__name__ in MADE_OF_TEXTS:
            continue
        tree, scope = _tree(module), dict(vars(module))
        makers = {name for name, value in scope.items() if _maker(value) is not None}
        for function in ast.walk(tree):
            if isinstance(function, ast.FunctionDef) and function.name not in makers:
                for node in ast.walk(function):
                    if _is_of_re(node) and isinstance(node, ast.Attribute) and node.attr == "compile":
                        yield f"{module.__name__}, line {node.lineno}"
        for call in ast.walk(tree):
            if isinstance(call, ast.Call) and _is_inline(call.func) and _inline(call, scope) is None:
                yield f"{module.__name__}, line {call.lineno}"


def worst_texts(compiled: re.Pattern[Any], every: bool) -> list[Text]:
    """Return texts of usual letters, or of some, and such as a pattern's own repetitions match, with wrong ends."""
    letters, ends = (LETTERS, ENDS[:2]) if every else (LETTERS[::6], ENDS[1:2])
    texts = [Text("", letter, end) for letter in letters for end in ends]
    tree = _parser.parse(compiled.pattern, compiled.flags & ~(re.UNICODE if isinstance(compiled.pattern, bytes) else 0))
    for variant in range(VARIANTS if every else 1):
        for begin, repeated in _Matching(variant).of(tree):
            texts += [Text(begin, repeated, end) for end in (ENDS if every else ends)]
    return list(dict.fromkeys(texts))


class _Matching:
    """Makes texts that match a pattern up to a repetition, and what it repeats."""

    def __init__(self, variant: int) -> None:
        self._variant = variant
        self._texts: list[tuple[str, str]] = []

    def of(self, tree: Any) -> list[tuple[str, str]]:
        self._walk(tree, "")
        return [(begin, repeated) for begin, repeated in self._texts if repeated]

    def _walk(self, tree: Any, before: str) -> str:
        """Return a text that matches a part of a pattern after another one, and note its repetitions."""
        text = ""
        for kind, value in tree:
            name = str(kind)
            if name.endswith("_REPEAT"):
                least, most, inner = value
                one = self._walk(inner, before + text)
                if most > 10:
                    self._texts += [(before + text, one), (before, one), ("", before + text + one)]
                text += one * (least if self._variant == 1 else max(least, 1))
            elif name in ("SUBPATTERN", "ATOMIC_GROUP"):
                text += self._walk(value[3] if name == "SUBPATTERN" else value, before + text)
            elif name == "BRANCH":
                parts = [self._walk(one, before + text) for one in value[1]]
                text += parts[self._variant % len(parts)]
            elif name.startswith("ASSERT"):
                self._walk(value[1], before + text)
            else:
                text += self._char(name, value)
        self._texts.append(("", text))
        return text

    def _char(self, name: str, value: Any) -> str:
        if name == "LITERAL":
            return chr(value)
        if name in ("NOT_LITERAL", "ANY"):
            return "a" if value != ord("a") else "b"
        if name != "IN":
            return ""
        chars = SAMPLES[self._variant :] + SAMPLES[: self._variant]
        own = [chr(one if kind_name == "LITERAL" else one[0]) for kind_name, one in _literals(value)]
        return next((char for char in (*chars, *own) if _is_in(char, value)), "a")


def _literals(members: Any) -> list[tuple[str, Any]]:
    return [(str(kind), value) for kind, value in members if str(kind) in ("LITERAL", "RANGE")]


def _is_in(char: str, members: Any) -> bool:
    negated = any(str(kind) == "NEGATE" for kind, _ in members)
    ranges = [(one, one) if kind == "LITERAL" else one for kind, one in _literals(members)]
    found = any(first <= ord(char) <= last for first, last in ranges)
    for kind, value in members:
        if str(kind) == "CATEGORY":
            category = str(value)
            is_of = {"DIGIT": char.isdigit(), "SPACE": char.isspace(), "WORD": char.isalnum() or char == "_"}
            found |= is_of[category.rpartition("_")[2]] is not ("NOT" in category)
    return found is not negated


@cache
def _modules() -> list[ModuleType]:
    names = [one.name for one in pkgutil.walk_packages(rag_assistant.__path__, "rag_assistant.")]
    return [importlib.import_module(name) for name in names if not name.endswith("__main__")]


@cache
def _tree(module: ModuleType) -> ast.Module:
    return ast.parse(Path(str(module.__file__)).read_text())


def _kept(module: ModuleType) -> Iterator[tuple[str, re.Pattern[Any], bool]]:
    """Yield the patterns that a module keeps, each with whether it is in a table."""
    for name, value in list(vars(module).items()):
        if isinstance(value, type):
            for field, inner in list(vars(value).items()):
                yield from ((f"{name}.{field}", one, depth > 0) for one, depth in _in(inner))
        elif (maker := _maker(value)) is not None and value.__module__ == module.__name__:
            yield f"{name}()", maker(), False
        else:
            yield from ((name, one, depth > 0) for one, depth in _in(value))


def _maker(value: object) -> Callable[[], re.Pattern[Any]] | None:
    """Return a function without arguments that returns a pattern; ``None`` for anything else."""
    if type(value) not in (FunctionType, type(cache(len))):
        return None
    signature = inspect.signature(value)  # type: ignore[arg-type]
    return value if "re.Pattern" in str(signature.return_annotation) and not signature.parameters else None  # type: ignore[return-value]


def _in(value: object, depth: int = 0) -> Iterator[tuple[re.Pattern[Any], int]]:
    if isinstance(value, re.Pattern):
        yield value, depth
    elif depth < MAX_DEPTH and isinstance(value, (tuple, list, frozenset, set)):
        for inner in value:
            yield from _in(inner, depth + 1)
    elif depth < MAX_DEPTH and isinstance(value, dict):
        yield from _in([*value, *value.values()], depth)


def _called(tree: ast.Module, scope: Mapping[str, Any]) -> Iterator[tuple[ast.Attribute, re.Pattern[Any]]]:
    """Yield the patterns on which a module calls a method, with the call."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and _is_inline(node.func):
            assert isinstance(node.func, ast.Attribute)
            if (compiled := _inline(node, scope)) is not None:
                yield node.func, compiled
        elif isinstance(node, ast.Attribute) and _is_method(node) and not _is_of_re(node):
            of = node.value
            value = scope.get(of.id) if isinstance(of, ast.Name) else None
            if isinstance(of, ast.Call) and isinstance(of.func, ast.Name):
                maker = _maker(scope.get(of.func.id))
                value = maker() if maker is not None else None
            if isinstance(value, re.Pattern):
                yield node, value


def _inline(call: ast.Call, scope: Mapping[str, Any]) -> re.Pattern[Any] | None:
    """Return the pattern of ``re.sub("a", "", text)`` and the like; ``None`` if it has values of its function."""
    assert isinstance(call.func, ast.Attribute)
    flags = [one.value for one in call.keywords if one.arg == "flags"]
    flags += call.args[FLAGS_AT.get(call.func.attr, 2) :][:1]
    try:
        return re.compile(*(eval(ast.unparse(one), dict(scope)) for one in (call.args[0], *flags)))
    except NameError:
        return None


def _attributes(tree: ast.AST) -> Iterator[ast.Attribute]:
    return (node for node in ast.walk(tree) if isinstance(node, ast.Attribute))


def _is_local(node: ast.AST, scope: Mapping[str, Any]) -> bool:
    """Return whether a value is that of a variable, as a loop over a table has it."""
    return isinstance(node, ast.Name) and node.id not in scope


def _is_inline(node: ast.AST) -> bool:
    return _is_of_re(node) and _is_method(node)


def _is_method(node: ast.AST) -> bool:
    return isinstance(node, ast.Attribute) and node.attr in METHODS


def _is_of_re(node: ast.AST) -> bool:
    return isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "re"
