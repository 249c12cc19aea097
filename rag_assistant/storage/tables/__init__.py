"""The tables. SQL is the truth; every index can be rebuilt. A change needs a migration; a test compares the two."""

from rag_assistant.storage.tables.account_tables import *  # noqa: F403 - the tables are in topics, and imported from here
from rag_assistant.storage.tables.base import *  # noqa: F403 - the tables are in topics, and imported from here
from rag_assistant.storage.tables.conversation_tables import *  # noqa: F403 - the tables are in topics, and imported from here
from rag_assistant.storage.tables.document_tables import *  # noqa: F403 - the tables are in topics, and imported from here
from rag_assistant.storage.tables.grid_tables import *  # noqa: F403 - the tables are in topics, and imported from here
