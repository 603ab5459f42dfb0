"""Bounds of standard deviations in the files of users; in a module of its own, because metrics load no pydantic."""

LEAST_ERROR = 1e-3  # levels; smaller errors only lose numerical precision
LARGEST_ERROR = 100.0  # levels; a tool score or a model with this error has no influence
