"""What the factory connects for one person: a store that it forgets would be everybody's."""

import types
from collections.abc import Iterator
from typing import Any

from rag_assistant.services import Services
from rag_assistant.storage.database import Database
from tests.testkit.people import add_person
from tests.web.conftest import app, environment, services, stand_ins

__all__ = ["app", "environment", "services", "stand_ins"]  # Fixtures.

# The services that everybody has in common, each with why.
SHARED = {
    "settings": "they are the server's",
    "embeddings": "vectors are found by chunks, and which chunks somebody may read decides their own ChunkStore",
    "uploads": "files lie under names that only a document's row tells",
    "embedders": "a model keeps nothing of what it embeds",
    "vectors": "an index gives ids and distances, of which the person's ChunkStore keeps what they may read",
    "keywords": "the same",
    "local_servers": "what runs on this machine is seen by administrators",
    "retention": "it moves and erases what nobody used, whosever it is",
    "data_dir": "it is the server's",
    "guide": "it comes with the program",
    "sources": "its states are seen by administrators",
    "files_probe": "it tells whether the files can be reached",
    "write_probe": "it tells whether anything can be stored",
    "probe": "it tells whether the database is there",
    "_live_turns": "their number is the server's limit; a person's Assistant looks a turn up in its own store first",
    "_texts_read": "a report looks up what was read of the documents that a person's own DocumentStore lists",
    "membership": "processes are the server's, and so is what they tell each other: numbers of turns",
    "answers": "it writes the answers of all people in one transaction, under ids from their own TurnStore",
    "accounts": "people_pages and account_pages alone have it, by their policies",
    "single_sign_on": "it lets people in; account_pages and people_pages alone have it, by their policies",
    "setup": "it is over with the first account",
    "grid_runner": "it asks each cell as the owner of its table, with that person's own assistant",
    "metrics": "they are figures without text",
    "reranking": "a model keeps nothing of what it orders",
    "remote_tools": "tools of other servers know nothing of ours",
    "web_pages": "it is told whose library a page is for",
    "page_images": "it is told whose library a document is looked for in",
    "process": "it is the process's",
    "_signals": "a signal is the number of a turn, which whoever follows it has asked their TurnStore for",
    "_writer": "it ends a turn that the person's own TurnStore has accepted",
    "_stateless": "it keeps nothing",
    "usage": "it is asked for one person's figures, or by an administrator for everybody's",
    "disk": "the whole disk",
    "backups": "of everything",
    "upkeep": "its beat looks at the disk and at backups",
    "processing": "it works on everybody's documents, of which each has an owner",
    "_people": "it makes those of one person",
    "_limits_of": "it makes those of one person",
    "_lock_file": "it is the process's",
    "_start_lock": "it is the process's",
    "_started": "it is the process's",
    "_warming": "it is the process's",
    "is_ending": "it is the process's",
}
# Where something of one person's goes on with a store of all, each with why.
UNSCOPED = {
    "method()": "what is learned of a model holds for everybody",
    "function.self": "limits are counted for the process, which is asked for its name",
}


def test_every_service_is_one_persons_or_says_why_it_is_everybodys(services: Services) -> None:
    own = services.for_person(add_person(services, "Ann").id, changes_documents=True)
    same = {name for name, value in vars(own).items() if value is vars(services)[name]}
    assert same == SHARED.keys()


def test_nothing_of_one_person_holds_a_store_of_everybody(services: Services) -> None:
    own = services.for_person(add_person(services, "Ann").id, changes_documents=True)
    known = {id(getattr(services, name)) for name in SHARED if getattr(services, name) is not None}
    personal = [(name, value) for name, value in vars(own).items() if name not in SHARED]
    found = {place for name, value in personal for place in holders(value, name, services.database, known)}
    assert found == UNSCOPED.keys()


def holders(thing: Any, place: str, whole: Database, seen: set[int]) -> Iterator[str]:
    """Yield where from a service one comes to the database of everybody: the class of ours, and its attribute."""
    if thing is whole:
        yield place
    if isinstance(thing, Database) or id(thing) in seen:
        return
    seen.add(id(thing))
    for name, part in parts_of(thing):
        if id(part) not in seen and any(value is whole for value in getattr(part, "__dict__", {}).values()):
            yield f"{type(thing).__name__}{name}"
            continue
        yield from holders(part, f"{type(thing).__name__}{name}", whole, seen)


def parts_of(thing: Any) -> list[tuple[str, Any]]:
    """Return what an object of ours, a function or a collection refers to."""
    if isinstance(thing, dict):
        return [("[]", value) for value in thing.values()]
    if isinstance(thing, list | tuple | set | frozenset):
        return [("[]", value) for value in thing]
    if isinstance(thing, types.MethodType):
        return [("()", thing.__self__)]
    if isinstance(thing, types.FunctionType):
        cells = zip(thing.__code__.co_freevars, thing.__closure__ or (), strict=True)
        return [(f".{name}", cell.cell_contents) for name, cell in cells]
    if not type(thing).__module__.startswith("rag_assistant") or isinstance(thing, type):
        return []
    slots = [name for kind in type(thing).__mro__ for name in getattr(kind, "__slots__", ())]
    names = [*getattr(thing, "__dict__", {}), *getattr(thing, "__struct_fields__", ()), *slots]
    return [(f".{name}", getattr(thing, name)) for name in names if hasattr(thing, name)]
