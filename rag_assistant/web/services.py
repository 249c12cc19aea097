"""The services of the running application, as a view may use them: for whoever asks."""

from flask import current_app, request

from rag_assistant.records import ALONE, NOBODY
from rag_assistant.services import Services

# Where a request's environment has who asks; see identity.py.
IDENTITY = "rag_assistant.identity"
# An id that nobody has.
NO_PERSON = 0


def services() -> Services:
    """Return the services of the running application for whoever asks, for a view: what is another's is not there.

    Before it is known who asks, and where nobody is signed in, nothing is anybody's.
    """
    identity = request.environ.get(IDENTITY, NOBODY)
    if identity is ALONE:
        return whole_services()
    person_id = identity.person.id if identity.person else NO_PERSON
    return whole_services().for_person(person_id, changes_documents="documents" in identity.abilities)


def whole_services() -> Services:
    """Return the services without regard to who asks: for settings and accounts, never for what people keep."""
    whole: Services = current_app.extensions["assistant"]
    return whole
