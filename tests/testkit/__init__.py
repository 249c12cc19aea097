"""What tests and benchmarks share: a scripted model, real servers, libraries of short documents, real data."""
