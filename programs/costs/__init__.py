"""What a run will cost: calls, tokens of texts and images, money."""
