"""The stages without a language model: rules over the question, measurements of the image."""
