"""What the model sees of a conversation, and people's decisions about it."""
