"""The vectors of the last questions: a conversation asks for each of them several times."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence

from rag_assistant.retrieval.embeddings.minilm import Vectors

KEPT = 1024  # 1.6 MB with 384 numbers each.


class QuestionVectors:
    """Remembers the vectors of short texts by one model. Safe to use from several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._kept: OrderedDict[str, Vectors] = OrderedDict()

    def of(self, texts: Sequence[str], embed: Callable[[Sequence[str]], Vectors]) -> list[Vectors]:
        """Return one vector for each text; those that are not known are embedded. Raises EmbedderFailed."""
        with self._lock:
            found = {text: self._kept[text] for text in texts if text in self._kept}
        for text in texts:
            # One at a time: several at once give memory back to the system, which a question should not wait for.
            if text not in found:
                (found[text],) = embed([text])
        with self._lock:
            for text in texts:
                self._kept[text] = found[text]
                self._kept.move_to_end(text)
            while len(self._kept) > KEPT:
                self._kept.popitem(last=False)
        return [found[text] for text in texts]
