"""An answer from measurements, by matching the words of a question and its options to them."""
