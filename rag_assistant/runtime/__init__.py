"""Operating system services: a job queue, supervised processes, the data folder."""
