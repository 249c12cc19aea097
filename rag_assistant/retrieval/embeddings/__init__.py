"""From a text to a vector: the embedding models that run here, and which of them serves."""
