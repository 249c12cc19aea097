"""The API, asked what its own description allows and what it does not, by schemathesis: nothing fails."""

from typing import Any

import pytest
from flask import Flask
from flask.testing import FlaskClient
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis.errors import Unsatisfiable

from tests.testkit.stub_model import Reply, StubModel
from tests.web.conftest import ask, upload


# Every time, test_document.py asks what is right once, and tests/web/test_fuzz.py what is wrong.
@pytest.mark.long
@pytest.mark.timeout(14_400)
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("mode", ["positive", "negative"])
def test_every_operation_answers_as_described(app: Flask, client: FlaskClient, stub: StubModel, mode: str) -> None:
    # To load it takes a second, in each of the processes that tests run in.
    import schemathesis
    from schemathesis.checks import not_a_server_error
    from schemathesis.specs.openapi.checks import positive_data_acceptance

    # What a schema cannot say is refused all the same: words that are too many for a setting, a cursor that no page
    # gave, two fields that mean the same. And where no model answers as it should, an error of its own is right.
    not_asked = [positive_data_acceptance, not_a_server_error]
    tells_all = {"GET /v1/models", "GET /v1/models/{name}", "DELETE /api/turns/{turn_id}"}
    stub.default = Reply("50 MB [1].")
    upload(client, "A document may be up to 50 MB large.", "limits.txt")
    conversation = ask(client, "How large may a document be?")["conversation_id"]
    ask(client, "And a page?", conversation_id=conversation)
    schema = schemathesis.openapi.from_wsgi("/openapi.json", app)
    limits = settings(
        max_examples=60,
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
        if mode == "negative" and operation.label == "POST /api/documents":
            continue  # In a form, everything is a text and every file a file.

        @limits
        @given(case=operation.as_strategy(generation_mode=schemathesis.GenerationMode(mode)))
        def check(case: Any) -> None:
            nonlocal asked
            response = case.call()
            assert response.status_code not in (500, 507), response.text
            excluded = [not_a_server_error] if case.operation.label in tells_all else not_asked
            case.validate_response(response, excluded_checks=excluded)
            asked += 1

        try:
            check()
        except Unsatisfiable:  # Nothing wrong can be asked of it.
            continue
        except (AssertionError, BaseExceptionGroup) as error:
            failed += [f"{operation.label}: {one}" for one in getattr(error, "exceptions", (error,))]
    print(f"{asked} cases, {mode}")
    assert failed == [], "\n\n".join(failed)
    assert asked > 20
