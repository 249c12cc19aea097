"""Storage of uploaded files: a folder on this machine, or an S3 bucket that all servers share."""

from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from rag_assistant.files.s3 import S3Files
    from rag_assistant.files.store import FolderFiles

# Stores files under unique names, so that no file ever replaces another. Its ``address`` is as in the settings, and its
# ``owner`` what a document's row has if its file is here; other servers access the files of one that ``is_shared``. In
# the folder ``incoming`` files are written before they are stored. Every method raises FilesUnavailable if the store
# can't do it now but may later.
FileStore: TypeAlias = "FolderFiles | S3Files"
