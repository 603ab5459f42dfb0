"""Read and run multiple-choice benchmarks, and mark the answers."""
