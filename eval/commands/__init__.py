"""Implement the commands that evaluate and tune: their options and their output."""
