"""Mark arguments whose values a shell completes with the names of files or folders."""

from argparse import Action

import shtab


def complete_files(argument: Action) -> None:
    """Complete the value of an argument with the names of files."""
    vars(argument)["complete"] = shtab.FILE


def complete_folders(argument: Action) -> None:
    """Complete the value of an argument with the names of folders."""
    vars(argument)["complete"] = shtab.DIRECTORY
