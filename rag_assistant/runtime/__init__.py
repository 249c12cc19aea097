"""What the operating system gives us: a job queue, supervised processes, the data folder, model files."""
