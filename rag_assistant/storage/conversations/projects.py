"""Projects: instructions, scope and overrides that conversations share. Like libraries, they have an owner."""

from collections.abc import Mapping
from typing import Any

from msgspec.structs import replace
from sqlalchemy import Connection, Select, delete, func, select, update

from rag_assistant.records import EVERYTHING, ListedConversation, Project, Scope
from rag_assistant.records.errors import NotProjectOwner, ProjectExists, ProjectNotFound
from rag_assistant.storage.accounts.libraries import SharedStore
from rag_assistant.storage.conversations.conversations import ENTRY, own_retention, with_own, with_rules
from rag_assistant.storage.database import set_values
from rag_assistant.storage.ownership import own_conversations, projects_of, readable_project
from rag_assistant.storage.tables import conversations, now, project_shares, projects


class ProjectStore(SharedStore[Project]):
    """Stores projects. People see those they may read and change those they may write."""

    table, item_id, of = projects, project_shares.c.project_id, staticmethod(projects_of)
    kind, not_found, not_owner, counted = Project, ProjectNotFound, NotProjectOwner, "conversations"
    fields_of = staticmethod(with_rules)

    def add(
        self, name: str, instructions: str = "", scope: Scope = EVERYTHING, own: Mapping[str, Any] | None = None
    ) -> Project:
        """Create a project; ``own`` are its overrides. Raises ProjectExists."""
        values = {"name": name, "instructions": instructions, "scope": scope.as_dict()}
        return self._add(values | {"overrides": with_own({}, own or {}), "created_at": now()})

    def change(
        self,
        project_id: int,
        values: Mapping[str, Any],
        *,
        scope: Scope | None = None,
        own: Mapping[str, Any] | None = None,
    ) -> Project:
        """Change a project, as a conversation is changed; only its owner sets ``everyone`` and ``retention_days``.

        Raises ProjectNotFound, NotProjectOwner, ProjectExists.
        """
        with self._database.write() as connection:
            own = own or {}
            row = self._own(connection, project_id, writers=not {"everyone", "retention_days"} & {*values, *own})
            self._refuse_taken_name(connection, {**row, **values})
            changed = {**values, "overrides": with_own(row["overrides"], own)}
            if scope is not None:
                changed["scope"] = scope.as_dict()
            set_values(connection, projects, project_id, changed)
        return self.get(project_id)

    def groups(self, limit: int) -> list[tuple[int, str, list[ListedConversation]]]:
        """Return the projects by name, each with up to ``limit`` unpinned conversations."""
        latest = conversations.c.updated_at.desc(), conversations.c.id.desc()
        rank = func.row_number().over(partition_by=conversations.c.project_id, order_by=latest).label("rank")
        with self._database.read() as connection:
            marked = conversations.c.pinned | conversations.c.archived
            shown = conversations.c.deleted_at.is_(None), conversations.c.listed, ~marked
            in_one = conversations.c.project_id.is_not(None), own_conversations(connection, of_few=True)
            listed = select(*ENTRY, conversations.c.project_id, rank).where(*in_one, *shown).subquery()
            is_in = (listed.c.project_id == projects.c.id) & (listed.c.rank <= limit)
            of_project = projects.c.id, projects.c.name, projects.c.person_id, projects.c.overrides
            query = select(*of_project, *listed.c).outerjoin(listed, is_in)
            query = query.where(readable_project(connection, projects.c.id))
            groups: dict[int, tuple[int, str, list[ListedConversation]]] = {}
            query = query.order_by(projects.c.name, projects.c.id, "rank")
            for project_id, name, owner, own, *row in connection.execute(query):
                group = groups.setdefault(project_id, (project_id, name, []))
                if row[0] is not None:
                    listed_one = ListedConversation(*row[: len(ENTRY)])
                    group[2].append(replace(listed_one, retention_days=own_retention(connection, owner, own)))
        return list(groups.values())

    def delete(self, project_id: int) -> None:
        """Delete a project. Its conversations stay, in none. Raises as ``change`` does."""
        with self._database.write() as connection:
            self._own(connection, project_id)
            connection.execute(delete(projects).where(projects.c.id == project_id))
            in_it = update(conversations).where(conversations.c.project_id == project_id)
            connection.execute(in_it.values(project_id=None))

    def _refuse_taken_name(self, connection: Connection, values: Mapping[str, Any]) -> None:
        # Each is a model at /v1, under its name.
        same = projects.c.name == values["name"], projects.c.person_id.is_not_distinct_from(values["person_id"])
        if connection.execute(select(projects).where(*same, projects.c.id != values.get("id", 0))).first() is not None:
            raise ProjectExists(values["name"])

    def _in_each(self, connection: Connection) -> Select[Any]:
        mine = own_conversations(connection), conversations.c.deleted_at.is_(None)
        counts = select(conversations.c.project_id, func.count()).where(conversations.c.project_id.is_not(None), *mine)
        return counts.group_by(conversations.c.project_id)
