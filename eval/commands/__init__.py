"""The commands that measure and tune: their options, and what they print."""
