"""Everything that is raised on purpose, in one tree: one class for each decision that a caller makes.

``str(error)`` is a full sentence that is safe to show: what was wrong, with the value, and what is allowed or what to
do. The cause is chained, for the log only. ``web/errors.py`` maps classes to HTTP statuses.
"""

from rag_assistant.records.errors.accounts import *  # noqa: F403 - the tree is in topics, and imported from here
from rag_assistant.records.errors.base import *  # noqa: F403 - the tree is in topics, and imported from here
from rag_assistant.records.errors.conversations import *  # noqa: F403 - the tree is in topics, and imported from here
from rag_assistant.records.errors.documents import *  # noqa: F403 - the tree is in topics, and imported from here
from rag_assistant.records.errors.models import *  # noqa: F403 - the tree is in topics, and imported from here
from rag_assistant.records.errors.requests import *  # noqa: F403 - the tree is in topics, and imported from here
