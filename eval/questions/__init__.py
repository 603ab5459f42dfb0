"""Read and run multiple choice and explanation benchmarks, and mark the answers."""
