"""What is measured and tuned: data sets, benchmarks, prompt optimisation."""
