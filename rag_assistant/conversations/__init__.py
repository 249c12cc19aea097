"""What the model sees of a conversation, and what people decide about it."""
