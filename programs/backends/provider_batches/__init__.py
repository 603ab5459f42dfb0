"""Requests as batches: half the price, answers within a day. ``run`` is the driver, one file each has a provider."""
