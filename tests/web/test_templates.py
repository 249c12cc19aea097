"""Templates draw what Jinja draws."""

from functools import partial
from typing import Any

import pytest
from flask import Flask
from flask.templating import Environment
from hypothesis import given
from hypothesis import strategies as st
from jinja2 import UndefinedError, pass_context, pass_environment, pass_eval_context
from jinja2.nodes import EvalContext
from jinja2.runtime import Context
from markupsafe import Markup, escape

from rag_assistant.web.templates import _Environment


class OwnHtml:
    """Something that says itself how it is drawn."""

    def __html__(self) -> str:
        return "<hr>"


class Called:
    """An object that can be called and is given the context."""

    @pass_context
    def __call__(self, context: Context, text: str) -> str:
        return f"{context['name']} {text}"


@pass_context
def with_context(context: Context, text: str) -> str:
    return f"{context['name']} {context.get('n')} {text}"


@pass_environment
def with_environment(environment: Environment, text: str) -> str:
    return f"{environment.autoescape is not None} {text}"


@pass_eval_context
def with_eval_context(evaluated: EvalContext, text: str) -> str:
    return f"{evaluated.autoescape} {text}"


def plain(text: str, **more: Any) -> str:
    return f"{text} {sorted(more)}"


VALUES: dict[str, Any] = {
    "name": "<Ann & Bob>", "html": Markup("<b>&amp;</b>"), "own": OwnHtml(), "number": 3, "none": None, "list": ["<i>"],
    "plain": plain, "part": partial(plain, more="'"), "called": Called(), "with_context": with_context,
    "tree": {"leaf": "<", "items": "hidden by the method", "inner": {"leaf": Markup("<i>")}, "none": None},
    "with_environment": with_environment, "with_eval_context": with_eval_context,
}  # fmt: skip
TEMPLATES = (
    *(f"{{{{ {name} }}}}" for name in ("name", "html", "own", "number", "none", "list", "unknown", "html ~ name")),
    "{% macro row(one) %}<p>{{ one }}</p>{{ caller() if caller }}{% endmacro %}{{ row(name) }}{{ row(html) }}"
    "{% call row(own) %}{{ name }}{% endcall %}",
    "{% set made %}<p>{{ name }}</p>{% endset %}{{ made }}{{ made|length }}",
    "{% autoescape false %}{{ name }}{{ html }}{% endautoescape %}{% autoescape none %}{{ name }}{% endautoescape %}",
    "{% for n in range(2) %}{{ plain('<') }}{{ part('<', n=n) }}{{ called('<') }}{{ with_context('<') }}{% endfor %}",
    "{% block inner %}{% set n = 4 %}{{ with_context(name) }}{{ plain(name) }}{% endblock %}",
    "{{ tree.leaf }}{{ tree.inner.leaf }}{{ tree.inner.leaf.upper() }}{{ tree.none.real }}",
    "{{ tree.gone }}{{ tree.none }}{{ tree.items() }}{{ (tree.gone or tree).leaf }}",
    "{% for one in tree.inner.values() if one.upper %}{{ one }}{% endfor %}",
    "{{ with_environment(name) }}{{ with_eval_context(name) }}{{ name.upper() }}{{ html.upper() }}",
)

SHOWN = _Environment(Flask(__name__), autoescape=True).from_string("{{ value }}")


@pytest.mark.parametrize("template", TEMPLATES)
def test_a_template_draws_what_it_draws_with_jinja_itself(app: Flask, template: str) -> None:
    theirs = Environment(app, autoescape=True)
    ours = app.jinja_env.from_string(template)
    assert ours.render(VALUES) == theirs.from_string(template).render(VALUES)


@given(st.text() | st.text("&<>'\"a") | st.integers() | st.booleans() | st.floats() | st.builds(Markup, st.text()))
def test_whatever_is_shown_is_escaped(value: object) -> None:
    assert SHOWN.render(value=value) == escape(value)


def test_what_is_not_there_has_nothing(app: Flask) -> None:
    for environment in (Environment(app, autoescape=True), app.jinja_env):
        with pytest.raises(UndefinedError, match="'gone'"):
            environment.from_string("{{ tree.gone.leaf }}").render(VALUES)
