"""Compiles once per process what every application would compile for itself, which is most of its cost."""

from functools import cache, partial
from pathlib import Path
from typing import Any
from weakref import WeakSet

from flask import Flask
from jinja2 import FileSystemBytecodeCache
from sqlalchemy.util import LRUCache
from werkzeug.routing import Rule

from rag_assistant import web
from rag_assistant.services import Services
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


class _Routes:
    """Gives an application the routes of one whose services have ended: to add two hundred takes longer than to ask."""

    def __init__(self) -> None:
        self._build, self._close = web.routes, Services.close
        self._apps: list[Flask] = []
        self._ended: WeakSet[Services] = WeakSet()

    def take(self) -> Flask:
        """Return routes that nobody uses."""
        unused = (app for app in self._apps if app.extensions["assistant"] in self._ended)
        if app := next(unused, None):
            self._apps.remove(app)
        self._apps.append(app or self._build())
        return self._apps[-1]

    def close(self, services: Services) -> None:
        """End services, after which their routes are free."""
        self._close(services)
        self._ended.add(services)


def _of_any_engine(key: Any) -> Any:
    dialect, *statement = key
    return (type(dialect), *statement)


def compile_once(templates: Path) -> None:
    """Share URL rules, SQL and scripts among the applications of this process, and templates through a folder."""
    assets.read_files = cache(assets.read_files)
    assets.read_modules = cache(assets.read_modules)
    reused = _Routes()
    web.routes = reused.take
    Services.close = lambda self: reused.close(self)  # type: ignore[method-assign]
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
