"""Run the benchmark of search: python -m bench.retrieval, with names of sets for a part of it."""

from bench.retrieval.tables import main

if __name__ == "__main__":
    main()
