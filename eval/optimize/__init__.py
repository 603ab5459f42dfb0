"""Prompt optimization on labelled images."""
