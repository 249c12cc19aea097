"""From a vector to its nearest chunks: in memory, in pgvector or in Chroma. Rebuilt from SQL at any time."""
