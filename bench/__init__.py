"""The benchmarks of docs/benchmarks.md. ``make bench`` runs them all; ``python -m bench NAME ...`` runs some."""

import os

# As in the program: NumPy, which is loaded after this, multiplies with one thread.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
