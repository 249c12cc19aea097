"""Chroma's embedding functions as embedding models, under Chroma's names."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from rag_assistant.records.errors import EmbedderFailed
from rag_assistant.retrieval.embeddings.minilm import Vectors


class ChromaEmbedder:
    """Embeds with one of Chroma's embedding functions, configured with ``options``."""

    def __init__(self, function: str, options: dict[str, Any]) -> None:
        self.name = f"chroma-{function}-{options['model_name']}" if "model_name" in options else f"chroma-{function}"
        self._function_name = function
        self._options = options
        self._function: Any = None

    def load(self) -> None:
        """Build the function. Raises EmbedderFailed."""
        from chromadb.utils.embedding_functions import known_embedding_functions

        try:
            self._function = known_embedding_functions[self._function_name].build_from_config(self._options)
        except Exception as error:
            raise EmbedderFailed(
                f'Chroma\'s embedding function "{self._function_name}" cannot be used with embedder_options: {error}'
            ) from error

    def close(self) -> None:
        """Do nothing."""

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Return one vector for each text. Raises EmbedderFailed."""
        try:
            return np.asarray(self._function(list(texts)), np.float32)
        except Exception as error:
            raise EmbedderFailed(f'Chroma\'s embedding function "{self._function_name}" failed: {error}') from error
