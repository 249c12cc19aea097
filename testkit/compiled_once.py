"""What every application compiles for itself, compiled once for all of a process: most of what it costs to make one."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

from flask import Flask
from jinja2 import FileSystemBytecodeCache
from werkzeug.routing import Rule

from rag_assistant.web import assets

_compile_rule = Rule.compile
_compiled: dict[tuple[Any, ...], dict[str, Any]] = {}


def compile_once(templates: Path) -> None:
    """Let the applications of this process share URL rules and scripts, and templates with all that name the folder."""
    assets.read_files = cache(assets.read_files)
    Flask.jinja_options = Flask.jinja_options | {"bytecode_cache": FileSystemBytecodeCache(str(templates))}
    Rule.compile = _compile_shared  # type: ignore[assignment, method-assign]


def _compile_shared(rule: Rule) -> None:
    # A rule stands for itself, but for the map that it is bound to.
    key = (rule.rule, rule.endpoint, rule.subdomain, frozenset(rule.methods or ()), repr(rule.defaults))
    if key not in _compiled:
        _compile_rule(rule)
        _compiled[key] = {name: value for name, value in vars(rule).items() if name != "map"}
    vars(rule).update(_compiled[key])
