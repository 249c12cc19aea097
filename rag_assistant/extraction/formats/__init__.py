"""The readers for each kind of file, chosen by ``extract.py``, in a process of its own."""

from pkgutil import get_data
from typing import Any

from msgspec.json import decode as from_json

# Names of encodings, number formats, signs and tags.
DATA: dict[str, Any] = from_json(get_data(__name__, "formats.json") or b"")
