"""Creates what the settings configure, and registers this process with others on the same database."""
