"""One score of tool scores and level probabilities: the formula, its interval, a profile of errors, its fit."""
