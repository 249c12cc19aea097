"""The pages, drawn by the server; without scripts everything here still works as plain forms."""
