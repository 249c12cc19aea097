"""The assistant as a server of the Model Context Protocol: its messages, and the tools that it offers. No decisions."""
