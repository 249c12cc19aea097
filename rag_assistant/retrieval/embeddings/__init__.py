"""From a text to a vector: the local embedding models, and which one serves."""
