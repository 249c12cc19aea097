"""Two people with accounts, whose passwords take no time."""

from collections.abc import Iterator

import pytest

from rag_assistant.records import Person
from rag_assistant.services import Services
from tests.testkit.people import add_person, quick_passwords


@pytest.fixture(autouse=True)
def _quick() -> Iterator[None]:
    with quick_passwords():
        yield


@pytest.fixture
def ann(services: Services) -> Person:
    """The first account."""
    return add_person(services, "Ann", "admin")


@pytest.fixture
def ben(ann: Person, services: Services) -> Person:
    return add_person(services, "Ben")
