"""Read what a model wrote: the JSON object in its text, its keys, the quality level, the letter of an option.

Nothing is guessed: what could mean two things is not read, and goes back to the model with the reason.
"""
