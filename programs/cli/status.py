"""The exit statuses of the command line."""

OK = 0
SOME_FAILED = 1  # status if an image failed, or a model could not be reached
USAGE = 2  # status of an error that the user can fix
UNSCORED = 3  # status if nothing failed, but a model gave no usable answer about an image
BELOW = 4  # status if nothing failed, but an image scores below --fail-under
INTERRUPTED = 130  # status of shells: 128 + SIGINT


def worst(*statuses: int) -> int:
    """Return the status that matters most: wrong usage, a failure, a score below the limit, a missing score."""
    return max(statuses, key=(OK, UNSCORED, BELOW, SOME_FAILED, USAGE).index)
