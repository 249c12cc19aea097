"""From a vector to its nearest chunks: exact in memory, or Chroma. Rebuilt from SQL at any time."""
