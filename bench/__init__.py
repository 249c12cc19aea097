"""The benchmarks of docs/benchmarks.md. ``make bench`` runs them all; ``python -m bench NAME ...`` runs some."""
