"""From a received file to a searchable document. Knows nothing of questions."""
