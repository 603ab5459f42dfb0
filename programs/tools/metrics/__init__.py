"""One file per metric: the function of its name, its map ``<name>_map``, and its ``TOOL``."""
