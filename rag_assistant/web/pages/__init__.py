"""The pages, rendered by the server; without scripts everything still works as plain forms."""
