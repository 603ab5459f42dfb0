"""Parse, without a model, the requested form of the answer from a question: type, options and scale."""
