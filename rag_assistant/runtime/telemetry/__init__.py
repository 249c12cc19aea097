"""Monitoring: metrics for Prometheus, and traces of an answer's steps."""
