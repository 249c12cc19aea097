"""Run the benchmark of search: python -m bench.retrieval."""

from bench.retrieval.tables import main

if __name__ == "__main__":
    main()
