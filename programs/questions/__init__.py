"""What a question says of its answer, read without a model: its form, its options and its scale."""
