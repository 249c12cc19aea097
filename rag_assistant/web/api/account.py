"""The JSON API of one's own account: identity, usage and limits."""

from typing import Any

from flask import Blueprint, Response, jsonify
from msgspec import to_builtins

from rag_assistant.accounts.limits import COST_PERIODS, PersonalLimits
from rag_assistant.records import ModelUse
from rag_assistant.records.errors import NotAllowed
from rag_assistant.settings.schema import Settings
from rag_assistant.storage.accounts.usage import DAY
from rag_assistant.web.identity import NO_ACCOUNTS, identity
from rag_assistant.web.request_parsing import whole_number
from rag_assistant.web.routing import ADMIN, READ_AS_PERSON, services, whole_services

blueprint = Blueprint("account_api", __name__, url_prefix="/api")


@blueprint.get("/account", policy=READ_AS_PERSON, answer="AccountAnswer")
def account() -> Response:
    """Return who is asking, what they may do here, and their usage and limits."""
    caller, usage = identity(), services().limits
    if caller.person is None or usage is None:
        raise NotAllowed(NO_ACCOUNTS)
    limits = limits_data(usage, services().settings.current)
    return jsonify(name=caller.person.name, role=caller.person.role, scopes=sorted(caller.abilities), limits=limits)


def limits_data(limits: PersonalLimits, settings: Settings) -> dict[str, Any]:
    usage, person_id = limits.usage, limits.person_id
    recent, running = usage.questions(person_id)
    period = COST_PERIODS[settings.max_cost_period]
    shares = {
        "questions_per_minute": (recent, settings.max_questions_per_minute),
        "running_answers": (running, settings.max_running_answers_per_person),
        "stored_bytes": (usage.stored_bytes(person_id), limits.max_bytes()),
        "tokens_per_day": (usage.used("tokens", DAY, person_id), settings.max_tokens_per_day_per_person),
        "cost": (round(usage.used("cost", period, person_id), 6), settings.max_cost_per_person),
    }
    return {name: {"used": used, "limit": limit} for name, (used, limit) in shares.items()}


@blueprint.get("/use", policy=ADMIN, params=("days",), answer={"use": list[ModelUse]})
def use() -> Response:
    """Return what each person's questions used, by model."""
    return jsonify(use=[to_builtins(row) for row in rows_of_use()])


def rows_of_use() -> list[ModelUse]:
    """Return everybody's use within the days of the address. Raises InvalidRequest."""
    days = whole_number("days", 30, 1, 3650) or 0
    return whole_services().usage.by_person(days, whole_services().settings.current.model_prices)
