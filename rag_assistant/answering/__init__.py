"""From a stored question to a stored answer. Knows nothing of how documents come in."""
