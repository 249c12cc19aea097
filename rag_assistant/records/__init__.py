"""The plain, frozen records that every layer passes to the next. Nothing here knows Flask, SQL or a model."""

from rag_assistant.records.accounts import *  # noqa: F403 - the records are in topics, and imported from here
from rag_assistant.records.answers import *  # noqa: F403 - the records are in topics, and imported from here
from rag_assistant.records.base import *  # noqa: F403 - the records are in topics, and imported from here
from rag_assistant.records.conversations import *  # noqa: F403 - the records are in topics, and imported from here
from rag_assistant.records.documents import *  # noqa: F403 - the records are in topics, and imported from here
from rag_assistant.records.grids import *  # noqa: F403 - the records are in topics, and imported from here
from rag_assistant.records.questions import *  # noqa: F403 - the records are in topics, and imported from here
