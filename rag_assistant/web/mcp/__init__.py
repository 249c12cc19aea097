"""The assistant as a Model Context Protocol server: its messages and tools. No decisions."""
