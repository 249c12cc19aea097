"""How templates are compiled and run: as Jinja does it, without steps that a page would take a thousand times.

What a template draws stays the same. HTML of our own goes into the page as it is, where Jinja would make a copy of it
at each level, and so does a text in which there is nothing to escape. An attribute is read without a function of
Jinja's, which is for what has none of that name. A plain function is called at once, where Jinja would look whether it
is to be given the context.
"""

from __future__ import annotations

import re
from functools import partial
from types import FunctionType
from typing import Any

from flask import Flask
from flask.templating import Environment
from jinja2 import nodes
from jinja2.compiler import CodeGenerator, Frame
from jinja2.runtime import Context, Macro

# What stands otherwise in HTML.
SPECIAL = re.compile("[&<>'\"]")


class _CodeGenerator(CodeGenerator):
    def _output_child_pre(self, node: nodes.Expr, frame: Frame, finalize: CodeGenerator._FinalizeInfo) -> None:
        if _escapes(frame, finalize):
            self.write("(shown if (kind := type(shown := (")
        else:
            super()._output_child_pre(node, frame, finalize)

    def _output_child_post(self, node: nodes.Expr, frame: Frame, finalize: CodeGenerator._FinalizeInfo) -> None:
        if _escapes(frame, finalize):
            self.write(
                "))) is Markup or (kind is str and not environment.find_special(shown)) "
                "else str(shown) if kind is int else escape(shown))"
            )
        else:
            super()._output_child_post(node, frame, finalize)

    def visit_Getattr(self, node: nodes.Getattr, frame: Frame) -> None:
        self.write("(it if (it := getattr(of := (")
        self.visit(node.node, frame)
        self.write(f"), {node.attr!r}, missing)) is not missing else environment.getattr(of, {node.attr!r}))")


class _Context(Context):
    def call(self, called: Any, /, *args: Any, **kwargs: Any) -> Any:
        kind = type(called)
        if kind is Macro:
            args = (self.eval_ctx, *args)
        elif kind is not partial and (kind is not FunctionType or hasattr(called, "jinja_pass_arg")):
            return super().call(called, *args, **kwargs)
        kwargs.pop("_loop_vars", None)
        kwargs.pop("_block_vars", None)
        return called(*args, **kwargs)


class _Environment(Environment):
    code_generator_class = _CodeGenerator
    context_class = _Context
    find_special = staticmethod(SPECIAL.search)


def init_app(app: Flask) -> None:
    """Let the templates of an application be compiled and run so."""
    app.jinja_environment = _Environment


def _escapes(frame: Frame, finalize: CodeGenerator._FinalizeInfo) -> bool:
    """Tell whether a value is shown escaped, and nothing else is done to it."""
    return frame.eval_ctx.autoescape and not frame.eval_ctx.volatile and finalize.src is None
