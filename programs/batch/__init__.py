"""Many images: side by side, kept in a results file, within a cost."""
