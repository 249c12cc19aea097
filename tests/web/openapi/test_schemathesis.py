"""The API, asked what its own description allows and what it does not, by schemathesis: nothing fails."""

from typing import Any

import pytest
import schemathesis
from flask import Flask
from flask.testing import FlaskClient
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis.errors import Unsatisfiable
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import positive_data_acceptance

from testkit.stub_model import Reply, StubModel
from tests.web.conftest import ask, upload

# What a schema cannot say is refused all the same: words that are too many for a setting, a cursor that no page gave,
# two fields that mean the same. And where no model answers as it should, an error of its own is right.
NOT_ASKED = [positive_data_acceptance, not_a_server_error]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("mode", list(GenerationMode))
@pytest.mark.parametrize("examples", [1, pytest.param(60, marks=(pytest.mark.long, pytest.mark.timeout(14_400)))])
def test_every_operation_answers_as_described(
    app: Flask, client: FlaskClient, stub: StubModel, mode: GenerationMode, examples: int
) -> None:
    stub.default = Reply("50 MB [1].")
    upload(client, "A document may be up to 50 MB large.", "limits.txt")
    conversation = ask(client, "How large may a document be?")["conversation_id"]
    ask(client, "And a page?", conversation_id=conversation)
    schema = schemathesis.openapi.from_wsgi("/openapi.json", app)
    limits = settings(
        max_examples=examples,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
        database=None,
        derandomize=True,
    )
    asked = 0
    failed: list[str] = []
    for found in schema.get_all_operations():
        operation: Any = found.ok()  # type: ignore[union-attr]
        if mode is GenerationMode.NEGATIVE and operation.label == "POST /api/documents":
            continue  # In a form, everything is a text and every file a file.

        @limits
        @given(case=operation.as_strategy(generation_mode=mode))
        def check(case: Any) -> None:
            nonlocal asked
            response = case.call()
            assert response.status_code not in (500, 507), response.text
            case.validate_response(response, excluded_checks=NOT_ASKED)
            asked += 1

        try:
            check()
        except Unsatisfiable:  # Nothing wrong can be asked of it.
            continue
        except (AssertionError, BaseExceptionGroup) as error:
            failed += [f"{operation.label}: {one}" for one in getattr(error, "exceptions", (error,))]
    print(f"{asked} cases, {mode.value}")
    assert failed == []
    assert asked > 20
