"""Read a model's answer: the JSON object in its text, its keys, the quality level, the letter of an option.

Nothing is guessed. An ambiguous answer is not read; it is returned to the model with the reason.
"""
