"""The settings that were changed on the page, where several servers share a database."""

from msgspec import structs
from sqlalchemy import delete, insert, select
from sqlalchemy.exc import IntegrityError

from rag_assistant.records.errors import SettingsChanged
from rag_assistant.settings.live import SharedValues
from rag_assistant.storage.database import Store
from rag_assistant.storage.tables import page_settings


class PageSettings(Store):
    """Keeps the last change."""

    def read(self) -> SharedValues:
        newest = select(page_settings).order_by(page_settings.c.version.desc()).limit(1)
        return next(iter(self._records(newest, SharedValues)), SharedValues())

    def write(self, changed: SharedValues) -> None:
        """Replace the version before. Raises SettingsChanged if it is no longer the last one."""
        own = page_settings.c.version
        try:
            with self._database.write() as connection:
                connection.execute(insert(page_settings).values(structs.asdict(changed)))
                connection.execute(delete(page_settings).where(own < changed.version))
        except IntegrityError as error:
            raise SettingsChanged("The settings were changed at the same moment; nothing was saved.") from error
