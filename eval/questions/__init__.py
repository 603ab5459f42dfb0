"""Read and run multiple choice, explanation and planning benchmarks, and mark the answers."""
