"""Errors of documents, libraries and search."""

from rag_assistant.records.errors.base import AssistantError, Conflict, NotFound


class DocumentNotFound(NotFound):
    sentence = "There is no document {document_id}; it may have been deleted."


class FileMissing(AssistantError):
    sentence = (
        "The file of document {document_id} is missing. Its text is still searchable; add the file again to restore it."
    )


class FileDamaged(AssistantError):
    sentence = "The file {file} is not the one that was uploaded. Add the document again."


class SameContent(Conflict):
    """The new version of a document has the same content as another document."""

    def __init__(self, document_id: int, replaces: int) -> None:
        super().__init__(
            f"Document {document_id} already has this content, so it cannot replace document {replaces} as well. "
            f"Delete document {replaces} instead."
        )
        self.document_id = document_id


class UnsupportedDocument(AssistantError):
    """No text can be read from files of this type."""


class ExtractionFailed(AssistantError):
    """The file's text could not be read; the message says what was found."""


class ExtractionCancelled(AssistantError):
    sentence = "Reading this file was cancelled: it was deleted, or the server is stopping."


class PageNotDrawn(AssistantError):
    """There is no picture of this page; the message says why, and the text is there."""


class LibraryNotFound(NotFound):
    sentence = "There is no library {library_id}."


class LibraryReadOnly(AssistantError):
    sentence = (
        'You can read "{name}" but not change it: its library belongs to somebody else, or your token does not allow '
        "changes."
    )


class NotLibraryOwner(AssistantError):
    sentence = 'The library "{name}" belongs to somebody else; only its owner can change or share it.'


class LibraryInUse(Conflict):
    sentence = 'The library "{name}" cannot be deleted: it has documents, perhaps in the trash, or is your last one.'


class TooManyOwned(Conflict):
    sentence = "You have {max_owned} of these, including the trash, which is the limit. Erase some first."


class EmbedderFailed(AssistantError):
    """The embedding model could not be loaded or run."""


class RerankerFailed(AssistantError):
    """The reranking model gave no order."""


class IndexUnavailable(AssistantError):
    """The vector index is unavailable; vectors in memory are searched."""


class AddressRefused(AssistantError):
    """The web page is not fetched: its address is not allowed, or fetching is off."""


class PageNotFetched(AssistantError):
    """A web page could not be fetched; the message says what its server does."""


class OriginUnavailable(AssistantError):
    """A source of documents cannot be read at the moment; its documents stay."""


class NoWebPage(Conflict):
    sentence = "Document {document_id} was not added from a web address, so it cannot be fetched again."


class GridNotFound(NotFound):
    sentence = "There is no table {grid_id}."


class CellNotFound(NotFound):
    sentence = "Table {grid_id} has no cell for document {document_id} in column {column_id}."


class NotGridOwner(AssistantError):
    sentence = 'The table "{name}" belongs to somebody else, who has not let you do this.'


class NothingToAsk(Conflict):
    sentence = 'Every cell of the table "{name}" is up to date or on its way, or its documents are not read yet.'
