"""Import and export of conversations: other products' exports, and our own archive."""
