"""Fit curves from the scale of each tool to 1..5, and adapters of the learned scorer, to MOS."""
