"""Name what a misspelled word probably means."""

from collections.abc import Iterable
from difflib import get_close_matches

SIMILARITY = 0.7  # least ratio of equal letters, without dashes; words below have nothing to do with each other


def did_you_mean(given: str, known: Iterable[str], expected: str = "") -> str:
    """Return ``, did you mean X?`` with the name most similar to ``given``, if any, and what is ``expected``.

    >>> did_you_mean("asess", ["assess", "gate"], "assess or gate")
    ', did you mean assess? Expected assess or gate'
    >>> did_you_mean("--duplicates", ["--price", "--jobs"])
    ''
    >>> did_you_mean("x", ["assess", "gate"], "assess or gate")
    ': expected assess or gate'
    """
    by_lower = {name.lower().strip("-"): name for name in known}
    close = get_close_matches(given.lower().strip("-"), by_lower, n=1, cutoff=SIMILARITY)
    if not close:
        return f": expected {expected}" if expected else ""
    return f", did you mean {by_lower[close[0]]}?" + (f" Expected {expected}" if expected else "")
