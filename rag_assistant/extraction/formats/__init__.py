"""The readers for each kind of file, chosen by ``loaders.py``; they run in the process of ``extract.py``."""

from pkgutil import get_data
from typing import Any

from msgspec.json import decode as from_json

# Names of encodings, number formats, signs and tags.
DATA: dict[str, Any] = from_json(get_data(__name__, "formats.json") or b"")
