"""Studies behind the shipped tables and defaults."""
