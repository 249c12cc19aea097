"""What is told to those who watch the service: figures for Prometheus, and traces of an answer's steps."""
