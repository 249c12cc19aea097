"""The stores over one database: everybody's, or one person's."""

from rag_assistant.conversations.prompts import title_for
from rag_assistant.retrieval.terms import turn_terms
from rag_assistant.storage.accounts.credentials import ConversationLinkStore
from rag_assistant.storage.accounts.libraries import LibraryStore
from rag_assistant.storage.conversations.branching import BranchStore
from rag_assistant.storage.conversations.conversations import ConversationManager
from rag_assistant.storage.conversations.erasing import TurnEraser
from rag_assistant.storage.conversations.exchange import ExchangeStore
from rag_assistant.storage.conversations.history import HistoryStore
from rag_assistant.storage.conversations.notes import NoteStore
from rag_assistant.storage.conversations.projects import ProjectStore
from rag_assistant.storage.conversations.turn_endings import AnswerLog
from rag_assistant.storage.conversations.turns import TurnStore
from rag_assistant.storage.conversations.versions import RatingStore, VersionStore
from rag_assistant.storage.database import Database
from rag_assistant.storage.documents.chunks import ChunkStore
from rag_assistant.storage.documents.documents import DocumentStore
from rag_assistant.storage.documents.rows import ScanStore
from rag_assistant.storage.grids import GridStore


class Stores:
    """What entry points read and write; ``process`` names this process among the live ones, once registered."""

    process: str
    answers: AnswerLog

    def open_stores(self, database: Database, files_owner: str) -> None:
        """Open the stores of a database, whose uploads belong to ``files_owner``."""
        self.database = database
        self.conversations = ConversationManager(database, self.process)
        self.turns = TurnStore(database, self.process, turn_terms)
        self.versions = VersionStore(database, turn_terms)
        self.eraser = TurnEraser(database, title_for)
        self.ratings = RatingStore(database)
        self.branches = BranchStore(database)
        self.exchange = ExchangeStore(database, files_owner, turn_terms, self.process)
        self.history = HistoryStore(database)
        self.notes = NoteStore(database)
        self.documents = DocumentStore(database, files_owner, self.process)
        self.libraries = LibraryStore(database)
        self.projects = ProjectStore(database)
        self.links = ConversationLinkStore(database)
        self.grids = GridStore(database)
        self.chunks = ChunkStore(database)
        self.scans = ScanStore(database)

    def take_name(self, process: str) -> None:
        """Use the name of this process for its claims."""
        self.process = process
        self.conversations.owner = self.turns.owner = self.answers.owner = self.documents.worker = process
        self.exchange.process = process
