"""How the stages work together: ``AgenticIQA`` composes them."""
