"""People with what is theirs, a client for each kind of caller who asks about it, and what each route is sent."""

from dataclasses import dataclass, field
from typing import Any

from flask import Flask
from flask.testing import FlaskClient
from sqlalchemy import MetaData, select
from werkzeug.test import TestResponse

from rag_assistant.records import ABILITIES, ExternalIdentity
from rag_assistant.services import Services
from rag_assistant.storage.accounts.credentials import LinkedIdentityStore
from tests.testkit.people import ACTOR, add_person, client_of, token_client
from tests.testkit.routes import send
from tests.web.conftest import ask, upload

MISSING = 999_999
CANARY = "zebracanary"
TAG = f"{CANARY}tag"


@dataclass
class World:
    """People with what is theirs, and who asks about it: Ben owns, Cat is another member, Ann the administrator."""

    app: Flask
    services: Services
    ids: dict[str, int] = field(default_factory=dict)
    callers: dict[str, FlaskClient] = field(default_factory=dict)
    narrow: dict[str, FlaskClient] = field(default_factory=dict)
    own: dict[str, int] = field(default_factory=dict)
    cells: int = 0

    @property
    def engine(self) -> str:
        """The database."""
        return self.services.database.engine.dialect.name

    def call(self, who: str, endpoint: str, method: str, path: str) -> TestResponse:
        self.cells += 1
        return send(self.callers[who], endpoint, method, path)


def fill(world: World) -> World:
    app, services = world.app, world.services
    ann, ben, cat, dan = (
        add_person(services, name, "admin" if name == "Ann" else "member") for name in ("Ann", "Ben", "Cat", "Dan")
    )
    owner, other, admin, disabled = (client_of(app, name) for name in ("Ben", "Cat", "Ann", "Dan"))
    services.accounts.set_disabled(dan, True, ACTOR)
    revoked = token_client(app, services, ben, "read", "ask", "documents")
    services.accounts.revoke_token(ben, services.accounts.credentials.tokens_of(ben.id)[0].id, ACTOR)
    document = upload(owner, f"The {CANARY} hisses at dawn.", f"{CANARY}.txt", tags=TAG)["document_id"]
    first = ask(owner, f"Why does the {CANARY} hiss?")
    picture = "data:image/jpeg;base64,/9j/4AAQ"
    second = ask(owner, f"And the {CANARY}?", conversation_id=first["conversation_id"], images=[picture])
    owner.post(f"/api/conversations/{first['conversation_id']}/compact", json={})
    library = owner.get("/api/libraries").json["libraries"][0]["library_id"]
    owner.patch(f"/api/libraries/{library}", json={"name": CANARY})
    project = owner.post("/api/projects", json={"name": TAG, "instructions": CANARY}).json["project_id"]
    owner.patch(f"/api/conversations/{first['conversation_id']}", json={"project_id": project})
    owner.put(f"/api/turns/{first['turn_id']}/rating", json={"rating": "up", "right_answer": f"{CANARY}!"})
    gone = ask(owner, f"The {CANARY} in the trash?")["conversation_id"]
    owner.delete(f"/api/conversations/{gone}")
    columns = [{"name": CANARY, "question": f"Why does the {CANARY} hiss?"}]
    grid = owner.post("/api/grids", json={"name": CANARY, "columns": columns}).json["grid_id"]
    services.accounts.make_token(ben, CANARY, ["read"], None, ACTOR)
    identities = LinkedIdentityStore(services.database)
    world.ids = {
        "conversation_id": first["conversation_id"],
        "turn_id": second["turn_id"],
        "document_id": document,
        "session_id": services.accounts.credentials.sessions_of(ben.id)[0].id,
        "token_id": services.accounts.credentials.tokens_of(ben.id)[0].id,
        "person_id": ben.id,
        "identity_id": identities.add(ben.id, ExternalIdentity("https://login.example", CANARY, CANARY)).id,
        "deleted": gone,
        "first_turn": first["turn_id"],
        "library_id": library,
        "project_id": project,
        "note_id": owner.post("/api/notes", json={"text": CANARY, "turn_id": second["turn_id"]}).json["note_id"],
        "grid_id": grid,
        "column_id": 1,
        "link_id": services.links.make(first["conversation_id"], "a secret", True).id,
    }
    world.own = {"conversation_id": ask(other, "What of geese?")["conversation_id"]}
    world.own |= {"document_id": upload(other, "Geese swim.", "geese.txt", tags="birds")["document_id"]}
    world.callers = {
        "nobody": app.test_client(), "revoked token": revoked, "disabled person": disabled,
        "another person": other, "admin": admin, "owner": owner,
    }  # fmt: skip
    for ability in ABILITIES:
        rest = [one for one in ABILITIES if one not in (ability, "admin")]
        world.narrow[ability] = token_client(app, services, ben, *rest)
    world.narrow["session"] = token_client(app, services, services.accounts.people.get("Ann"), *ABILITIES)
    assert cat.id != ann.id
    return world


def of_missing(world: World) -> dict[str, int]:
    return dict.fromkeys(world.ids, MISSING)


def kept_of_owner(world: World) -> list[Any]:
    """Return every row that has to do with the owner's conversations and documents."""
    names = (
        "conversations",
        "turns",
        "messages",
        "ratings",
        "receipts",
        "summaries",
        "documents",
        "document_tags",
        "projects",
        "notes",
        "grids",
    )
    metadata = MetaData()
    metadata.reflect(world.services.database.engine, only=names)
    rows: list[Any] = []
    with world.services.database.read() as connection:
        for name in names:
            table = metadata.tables[name]
            for row in connection.execute(select(table)).all():
                if CANARY in repr(row) or name in ("summaries",):
                    rows.append((name, repr(row)))
    return sorted(rows)
