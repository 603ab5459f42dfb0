"""Pixels, filters, maps and networks, the building blocks of metrics."""
