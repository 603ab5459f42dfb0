"""Prompt optimization on labeled images."""
