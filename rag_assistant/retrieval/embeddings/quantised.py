"""Quantise a model's file to 8 bits, once, with onnxruntime's dynamic quantisation.

It takes some seconds, 500 MB, and the package onnx, which nothing else needs: so it is a separate program (``python -m
rag_assistant.retrieval.embeddings.quantised SOURCE TARGET``).
"""

import shutil
import subprocess
import sys
import tempfile
from importlib import metadata
from pathlib import Path

from rag_assistant.records.errors import EmbedderFailed
from rag_assistant.runtime.parent import end_with_parent
from rag_assistant.runtime.supervised_process import plain_environment

# With weights of 32 bits in between.
SIZES_NEEDED = 5


def quantised(source: Path, folder: Path, program: str = __spec__.name) -> Path:
    """Return the quantised file of a model in ``folder``, created once by ``program``. Raises EmbedderFailed."""
    target = folder / f"{source.parent.name}-{metadata.version('onnxruntime')}.onnx"
    if not target.exists():
        folder.mkdir(parents=True, exist_ok=True)
        for interrupted in folder.glob("tmp*"):
            shutil.rmtree(interrupted, ignore_errors=True)
        try:
            command = [sys.executable, "-m", program, str(source), str(target)]
            subprocess.run(command, check=True, capture_output=True, env=plain_environment())
        except subprocess.CalledProcessError as error:
            problem = error.stderr.decode(errors="replace").strip().rpartition("\n")[2]
            free = shutil.disk_usage(folder).free
            if free < SIZES_NEEDED * source.stat().st_size:  # Libraries say what is cut short, not why.
                problem = f"the disk has only {free / 1e6:.0f} MB left."
            raise EmbedderFailed(f"The embedding model cannot be quantised: {problem}") from error
    return target


def quantise(source: Path, target: Path) -> None:
    """Write the quantised file of a model atomically."""
    import onnxruntime
    from onnx import TensorProto
    from onnxruntime.quantization import quantize_dynamic

    with tempfile.TemporaryDirectory(dir=target.parent) as folder:
        folded, done = Path(folder, "folded.onnx"), Path(folder, "done.onnx")
        # The package's file has 8-bit weights, too, but computes in float32: that is quantised here.
        options = onnxruntime.SessionOptions()
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_BASIC
        options.optimized_model_filepath = str(folded)
        onnxruntime.InferenceSession(source, options, providers=["CPUExecutionProvider"])
        # Processors without VNNI add two 8-bit products in 16 bits: with one bit less, they always fit.
        options_of_types = {"DefaultTensorType": TensorProto.FLOAT}  # The opset of Microsoft's own operations.
        quantize_dynamic(folded, done, per_channel=True, reduce_range=True, extra_options=options_of_types)
        done.replace(target)


if __name__ == "__main__":
    end_with_parent()
    quantise(Path(sys.argv[1]), Path(sys.argv[2]))
