"""A plan from the words of a question, by rules."""
