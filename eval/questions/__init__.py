"""Multiple choice, explanation and planning benchmarks: their readers, how they are asked, and their figures."""
