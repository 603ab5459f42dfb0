"""Public data sets, one file each, read in the layout of their archives: ``catalog.TASKS``."""
