"""Compiles once per process what every application would compile for itself, which is most of its cost."""

from functools import cache, partial
from pathlib import Path
from typing import Any

from flask import Flask
from jinja2 import FileSystemBytecodeCache
from sqlalchemy.util import LRUCache
from werkzeug.routing import Rule

from rag_assistant import web
from rag_assistant.storage import database
from rag_assistant.web import assets

_compile_rule = Rule.compile
_compiled: dict[tuple[Any, ...], dict[str, Any]] = {}

MAX_STATEMENTS = 5_000


class _CompiledSql(LRUCache[Any, Any]):
    """Compiled SQL by statement and dialect; SQLAlchemy would compile it for each engine."""

    def __init__(self) -> None:
        super().__init__(MAX_STATEMENTS)

    def get(self, key: Any, default: Any = None) -> Any:
        return super().get(_of_any_engine(key), default)

    def __setitem__(self, key: Any, value: Any) -> None:
        super().__setitem__(_of_any_engine(key), value)


COMPILED_SQL = _CompiledSql()


def _of_any_engine(key: Any) -> Any:
    dialect, *statement = key
    return (type(dialect), *statement)


def compile_once(templates: Path) -> None:
    """Share URL rules, SQL and scripts among the applications of this process, and templates through a folder."""
    assets.read_files = cache(assets.read_files)
    assets.read_modules = cache(assets.read_modules)
    web.build_types = cache(web.build_types)  # type: ignore[attr-defined] # It imports the function.
    Flask.jinja_options = Flask.jinja_options | {"bytecode_cache": FileSystemBytecodeCache(str(templates))}
    Rule.compile = _compile_shared  # type: ignore[assignment, method-assign]
    database.sa.create_engine = partial(  # type: ignore[attr-defined] # It imports the module.
        database.sa.create_engine,  # type: ignore[attr-defined]
        execution_options={"compiled_cache": COMPILED_SQL},
    )


def _compile_shared(rule: Rule) -> None:
    # A rule is identified by itself, apart from the map it is bound to.
    key = (rule.rule, rule.endpoint, rule.subdomain, frozenset(rule.methods or ()), repr(rule.defaults))
    if key not in _compiled:
        _compile_rule(rule)
        _compiled[key] = {name: value for name, value in vars(rule).items() if name != "map"}
    vars(rule).update(_compiled[key])
