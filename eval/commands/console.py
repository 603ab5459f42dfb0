"""Tables on stdout."""

from rich.console import Console
from rich.table import Table

PLAIN_WIDTH = 160  # columns where the output is no terminal


def print_table(table: Table) -> None:
    """Print a table, as wide as the terminal, or 160 columns where there is none."""
    console = Console(highlight=False)
    (console if console.is_terminal else Console(highlight=False, width=PLAIN_WIDTH)).print(table)
