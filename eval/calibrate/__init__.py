"""Curves from each tool's scale to 1..5, fitted to opinion scores."""
