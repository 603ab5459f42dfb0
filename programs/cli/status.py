"""The exit statuses of the command line."""

OK = 0
SOME_FAILED = 1  # an image failed, or a model could not be reached
USAGE = 2  # an error that the user can fix
UNSCORED = 3  # nothing failed, but an image has no score because the model gave no usable answer
BELOW = 4  # nothing failed, but an image scores below --fail-under
INTERRUPTED = 130  # 128 + SIGINT, as shells have it


def worst(*statuses: int) -> int:
    """Return the status that matters most: wrong usage, a failure, a score below the limit, a missing score."""
    return max(statuses, key=(OK, UNSCORED, BELOW, SOME_FAILED, USAGE).index)
