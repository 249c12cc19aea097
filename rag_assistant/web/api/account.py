"""The JSON API of one's own account: who asks, and how much of their share they have taken."""

from flask import Blueprint, Response, jsonify

from rag_assistant.accounts.limits import MEGABYTE
from rag_assistant.records.errors import NotAllowed
from rag_assistant.web.identity import NO_ACCOUNTS, identity
from rag_assistant.web.routing import READ_AS_PERSON
from rag_assistant.web.schemas import AccountAnswer
from rag_assistant.web.services import services

blueprint = Blueprint("account_api", __name__, url_prefix="/api")


@blueprint.get("/account", policy=READ_AS_PERSON, answer=AccountAnswer)
def account() -> Response:
    """Return who asks, what they may do here, and what they have taken of what they may take."""
    caller, usage = identity(), services().limits
    if caller.person is None or usage is None:
        raise NotAllowed(NO_ACCOUNTS)
    settings, person = services().settings.current, caller.person
    stored_mb = settings.max_stored_mb_per_person
    limits = {
        "questions_per_minute": (usage.recent_questions, settings.max_questions_per_minute),
        "running_answers": (usage.running, settings.max_running_answers_per_person),
        "stored_bytes": (usage.stored_bytes, None if stored_mb is None else stored_mb * MEGABYTE),
        "tokens_per_day": (usage.tokens, settings.max_tokens_per_day_per_person),
    }
    shares = {name: {"used": used, "limit": limit} for name, (used, limit) in limits.items()}
    return jsonify(name=person.name, role=person.role, scopes=sorted(caller.abilities), limits=shares)
