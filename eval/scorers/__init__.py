"""The scorers that ``evaluate`` measures: the program, a metric, a function, or a pyiqa metric."""
