"""What each route declares: its policy, parameters, body and response. And its services.

A route without a policy prevents the application from starting. Access to particular data is decided by ownership: see
storage/ownership.py.
"""

from collections.abc import Mapping
from typing import Any

from flask import Flask, current_app, request
from msgspec import Struct, defstruct, field
from pydantic import BaseModel
from werkzeug.routing import Rule

from rag_assistant.records import ALONE, NOBODY, Ability
from rag_assistant.services import Services


class Policy(Struct, frozen=True):
    """The ability a request needs, ``None`` if public. ``session``: no token will do; ``person``: needs an account."""

    ability: Ability | None
    session: bool = False
    person: bool = False


# Only programs use these paths, whatever their Accept header says.
API = ("/api/", "/v1/")
# Anthropic's protocol: its clients have a header for their key, and a shape of errors.
ANTHROPIC = "/v1/messages"
FOR_PROGRAMS = (*API, "/mcp", "/metrics")
SESSION_ONLY = "Accounts are managed in a browser, by somebody who is signed in. A token cannot do this."

# The key of the identity in a request's environment; see identity.py.
IDENTITY = "rag_assistant.identity"
# In a command's requests: nobody can open a link to where it runs.
NO_ADDRESS = "rag_assistant.no_address"
# An id that nobody has.
NO_PERSON = 0

PUBLIC = Policy(None)
READ, ASK, DOCUMENTS, ADMIN = Policy("read"), Policy("ask"), Policy("documents"), Policy("admin")
# What only makes sense with accounts.
READ_AS_PERSON, ASK_AS_PERSON = Policy("read", person=True), Policy("ask", person=True)
SHARING = Policy("documents", person=True)
OWN_ACCOUNT, PEOPLE = Policy("read", session=True), Policy("admin", session=True)


class Operation(Struct, frozen=True):
    """The parameters, body and response of a route.

    ``answer`` is a type (for a route: or its fields), the name of one in openapi/answers.json, a media type if it isn't
    JSON, ``None`` if it is empty.
    ``events`` are those of its stream: alone or, with an ``answer``, if the body asks for one. ``params`` are the only
    query parameters; a ``form`` has the body's fields. ``file``: the body is a file, also in a form. A ``POST`` of the
    API without a body takes an empty one. Examples are in openapi/operations.json.
    """

    answer: type | str | None = None
    status: int = 200
    body: type[BaseModel] | None = None
    optional: bool = False
    form: bool = False
    file: bool = False
    params: tuple[str, ...] = ()
    headers: tuple[str, ...] = ()
    events: Mapping[str, type | str] = field(default_factory=dict)


DESCRIBED = frozenset(Operation.__struct_fields__)


class Route(Rule):
    """A route with its policy and operation, which are arguments of ``@blueprint.get`` and the like."""

    def __init__(self, string: str, *, policy: Policy, **options: Any) -> None:
        if isinstance(fields := options.get("answer"), Mapping):
            name = f"{options['endpoint'].rpartition('.')[2].title().replace('_', '')}Answer"
            options["answer"] = defstruct(name, fields.items(), frozen=True, kw_only=True, forbid_unknown_fields=True)
        self.operation = Operation(**{name: options.pop(name) for name in DESCRIBED & options.keys()})
        super().__init__(string, **options)
        self.policy = policy


def routes_of(app: Flask) -> list[Route]:
    """Return all routes of an application except Flask's own for static files."""
    return [rule for rule in app.url_map.iter_rules() if isinstance(rule, Route)]


def policy_asked() -> Policy:
    """Return the policy of the requested route. Unknown addresses are public."""
    route = request.url_rule
    return route.policy if isinstance(route, Route) else PUBLIC


def services() -> Services:
    """Return the services of the person asking, without other people's data.

    Before authentication, and where nobody is signed in, there is no data.
    """
    identity = request.environ.get(IDENTITY, NOBODY)
    if identity is ALONE:
        return whole_services()
    person_id = identity.person.id if identity.person else NO_PERSON
    return whole_services().for_person(person_id, changes_documents="documents" in identity.abilities)


def whole_services() -> Services:
    """Return the unrestricted services: for settings and accounts, never for people's data."""
    whole: Services = current_app.extensions["assistant"]
    return whole
