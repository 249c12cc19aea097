"""How templates are compiled and run: as Jinja does it, without two steps that a page would take a thousand times.

What a template draws stays the same. HTML of our own goes into the page as it is, where Jinja would make a copy of it
at each level; and a plain function is called at once, where Jinja would look whether it is to be given the context.
"""

from __future__ import annotations

from functools import partial
from types import FunctionType
from typing import Any

from flask import Flask
from flask.templating import Environment
from jinja2 import nodes
from jinja2.compiler import CodeGenerator, Frame
from jinja2.runtime import Context


class _CodeGenerator(CodeGenerator):
    def _output_child_pre(self, node: nodes.Expr, frame: Frame, finalize: CodeGenerator._FinalizeInfo) -> None:
        if _escapes(frame, finalize):
            self.write("(shown if type(shown := (")
        else:
            super()._output_child_pre(node, frame, finalize)

    def _output_child_post(self, node: nodes.Expr, frame: Frame, finalize: CodeGenerator._FinalizeInfo) -> None:
        if _escapes(frame, finalize):
            self.write(")) is Markup else escape(shown))")
        else:
            super()._output_child_post(node, frame, finalize)


class _Context(Context):
    def call(self, called: Any, /, *args: Any, **kwargs: Any) -> Any:
        kind = type(called)
        if kind is partial or (kind is FunctionType and not hasattr(called, "jinja_pass_arg")):
            kwargs.pop("_loop_vars", None)
            kwargs.pop("_block_vars", None)
            return called(*args, **kwargs)
        return super().call(called, *args, **kwargs)


class _Environment(Environment):
    code_generator_class = _CodeGenerator
    context_class = _Context


def init_app(app: Flask) -> None:
    """Let the templates of an application be compiled and run so."""
    app.jinja_environment = _Environment


def _escapes(frame: Frame, finalize: CodeGenerator._FinalizeInfo) -> bool:
    """Tell whether a value is shown escaped, and nothing else is done to it."""
    return frame.eval_ctx.autoescape and not frame.eval_ctx.volatile and finalize.src is None
