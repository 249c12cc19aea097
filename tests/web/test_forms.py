"""Forms are the actions of the API: what their fields become, and who may send them."""

from inspect import unwrap
from typing import Any

import pytest
from flask import Flask, request

from rag_assistant.web.api import libraries, projects, turns
from rag_assistant.web.pages import history
from rag_assistant.web.pages.sharing import save_library_access, save_project_access
from rag_assistant.web.request_bodies import (
    ChangeNoteBody,
    NewNoteBody,
    NewProjectBody,
    RulesBody,
    ShareBody,
    WebPageBody,
)
from rag_assistant.web.request_parsing import form_fields
from rag_assistant.web.routing import routes_of


@pytest.mark.parametrize(
    ("model", "fields", "content"),
    [
        (RulesBody, {"max_history_turns": "all", "notes": "false"}, {"max_history_turns": None, "notes": False}),
        (RulesBody, {"max_history_turns": "", "notes": ""}, {"max_history_turns": "default", "notes": "default"}),
        (RulesBody, {"max_history_turns": " 7 "}, {"max_history_turns": 7}),
        (RulesBody, {"document_ids": ["", "3", "x"]}, {"document_ids": [3, "x"]}),
        (RulesBody, {"tags": ["", "2024"]}, {"tags": ["2024"]}),
        (RulesBody, {"document_ids": "", "tags": ""}, {"document_ids": None, "tags": None}),
        (NewProjectBody, {"name": " a "}, {"name": " a "}),
        (ChangeNoteBody, {"text": "", "pinned": "true"}, {"text": "", "pinned": True}),
        (NewNoteBody, {"text": "7", "turn_id": "x", "pinned": "on"}, {"text": "7", "turn_id": "x", "pinned": "on"}),
        (ShareBody, {"person": "ben", "access": ""}, {"person": "ben", "access": None}),
        (WebPageBody, {"url": "https://x.example", "tags": "", "other": "1"}, {"url": "https://x.example", "tags": []}),
    ],
)  # fmt: skip
def test_the_fields_of_a_form_become_the_body_of_the_api(
    model: Any, fields: dict[str, Any], content: dict[str, Any]
) -> None:
    with Flask(__name__).test_request_context(method="POST", data=fields):
        assert request.form
        assert form_fields(model) == content


def test_a_form_needs_what_its_action_needs_in_the_api(app: Flask) -> None:
    views = [(app.view_functions[route.endpoint], route) for route in routes_of(app)]
    policies = {view: route.policy for view, route in views}
    # Several at once, for which the API has a call each.
    one_by_one = {save_library_access: libraries.share, save_project_access: projects.share, history.rate: turns.rate}
    # A page's own view may be wrapped, too: its errors are shown on the page.
    forms = [
        (action, route)
        for view, route in views
        if (action := unwrap(view)) is not view and (action in one_by_one or ".pages." not in action.__module__)
    ]
    assert len(forms) > 15
    for action, route in forms:
        assert policies[one_by_one.get(action, action)] == route.policy, route.rule
