"""From a hostile file to text, in a sandbox. The libraries for file formats live here only."""
