"""The services of the running application for views, restricted to the person asking."""

from flask import current_app, request

from rag_assistant.records import ALONE, NOBODY
from rag_assistant.services import Services

# The key of the identity in a request's environment; see identity.py.
IDENTITY = "rag_assistant.identity"
# An id that nobody has.
NO_PERSON = 0


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
