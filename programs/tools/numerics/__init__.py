"""Pixels, filters, maps and networks that metrics are made of."""
