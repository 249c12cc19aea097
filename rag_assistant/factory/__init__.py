"""What the settings name, opened, and this process among those that share a database."""
