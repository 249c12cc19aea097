"""From a file to passages: read, cut, embed, search. Chroma and the file formats' libraries live here only."""
