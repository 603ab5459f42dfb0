"""What ``evaluate`` measures: the program, or a scorer of anybody's: a metric, a function, a pyiqa metric."""
