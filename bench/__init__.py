"""The benchmarks of docs/benchmarks.md. ``make bench`` runs them all; ``python -m bench NAME ...`` runs some."""

import os

# As in the product: NumPy, which is imported after this, uses one thread for multiplication.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
