"""Addresses in templates are those that Flask makes."""

import pytest
from flask import Flask

NUMBERS = {"conversation_id": 3, "turn_id": 12, "document_id": 7, "page": 2}


@pytest.mark.parametrize("base", ["http://localhost", "http://localhost/rag"])
def test_an_address_that_is_remembered_is_the_one_that_flask_makes(app: Flask, base: str) -> None:
    remembered = app.jinja_env.globals["url_for"]
    assert callable(remembered)
    for more in ({}, {"q": "geese & ganders", "drawer": None}, {"from": 4, "tag": "7"}):
        for shift in (0, 1):
            with app.test_request_context("/", base_url=base):
                for rule in app.url_map.iter_rules():
                    known = {name: NUMBERS.get(name, 5) if "int" in str(rule) else "x" for name in rule.arguments}
                    now = {name: one + shift if isinstance(one, int) else one for name, one in (known | more).items()}
                    assert remembered(rule.endpoint, **now) == app.url_for(rule.endpoint, **now)


def test_an_address_with_a_host_is_that_of_the_request(app: Flask) -> None:
    for host in ("http://localhost", "http://127.0.0.1"):
        with app.test_request_context("/", base_url=host):
            found = app.jinja_env.from_string("{{ url_for('api.query', _external=True) }}").render()
            assert found == f"{host}/api/query"
