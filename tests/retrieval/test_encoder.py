"""The encoder that multiplies with 8 bits."""

import numpy as np
import pytest

from rag_assistant.retrieval.embeddings.encoder import Layer, Linear, Norm, encoder_model
from rag_assistant.retrieval.embeddings.minilm import Vectors, open_session

pytestmark = pytest.mark.model
SIZE, OUTLIER = 32, 5


def mean_of(outliers: tuple[int, ...], given: Vectors) -> Vectors:
    """Return what an encoder of one layer makes of a text whose first normalisation blows one number up."""
    random = np.random.default_rng(7)

    def linear(inputs: int, outputs: int) -> Linear:
        codes = random.integers(-127, 128, (inputs, outputs), np.int8)
        return Linear(codes, np.full(outputs, 1e-3, np.float32), np.zeros(outputs, np.float32))

    def spared(one: Linear) -> Linear:
        return Linear(one.codes, one.scales, one.bias, outliers)

    plain = Norm(np.ones(SIZE, np.float32), np.zeros(SIZE, np.float32))
    weight = plain.weight.copy()
    weight[OUTLIER] = 500
    parts = spared(linear(SIZE, 3 * SIZE)), linear(SIZE, SIZE), spared(linear(SIZE, 64)), linear(64, SIZE)
    layer = Layer(parts[0], parts[1], plain, parts[2], parts[3], plain)
    session = open_session(encoder_model(Norm(weight, plain.bias), [layer], 4, 1e-12))
    mean: Vectors = session.run(None, {"embeddings": given[None]})[0][0]
    return mean


def test_an_outlier_does_not_take_the_precision_of_the_others() -> None:
    given = np.random.default_rng(8).standard_normal((6, SIZE)).astype(np.float32)
    every = mean_of(tuple(range(SIZE)), given)  # All of them as float32.
    assert np.abs(mean_of((OUTLIER,), given) - every).max() < np.abs(mean_of((), given) - every).max() / 4
