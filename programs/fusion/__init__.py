"""Fuse tool scores and level probabilities into one score: the formula, its interval, and fusion profiles."""
