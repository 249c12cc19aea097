"""How the models of endpoints count tokens, and the most that each takes, as their answers taught it."""

from msgspec.structs import asdict
from sqlalchemy import ColumnElement, delete, insert, select

from rag_assistant.records import ModelCounts
from rag_assistant.storage.database import Store, record_of
from rag_assistant.storage.tables import model_counts


class ModelCountsStore(Store):
    """Keeps a row for each endpoint and model."""

    def get(self, base_url: str, model: str) -> ModelCounts | None:
        """Return what is known of a model, ``None`` if nothing is."""
        with self._database.read() as connection:
            row = connection.execute(select(model_counts).where(*_of(base_url, model))).mappings().first()
        return None if row is None else record_of(row, ModelCounts)

    def keep(self, base_url: str, model: str, counts: ModelCounts) -> None:
        """Keep what is known of a model."""
        with self._database.write(forced=False) as connection:
            connection.execute(delete(model_counts).where(*_of(base_url, model)))
            connection.execute(insert(model_counts).values(base_url=base_url, model=model, **asdict(counts)))


def _of(base_url: str, model: str) -> list[ColumnElement[bool]]:
    return [model_counts.c.base_url == base_url, model_counts.c.model == model]
