"""Plan a question by rules: whether it is about quality, which parts, distortions and tools it names."""
