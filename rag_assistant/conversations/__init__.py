"""What the model sees of a conversation, and what a person decides about it."""
