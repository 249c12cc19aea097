"""From a question to passages: tokenize, embed, search, fuse. Knows neither SQL nor files."""
