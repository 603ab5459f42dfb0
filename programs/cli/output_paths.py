"""Check the outputs of a command before the first image, and report failed writes after the last one."""

import os
import secrets
from argparse import Namespace
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import NamedTuple

from agenticiqa.programs.batch.job import Job
from agenticiqa.programs.cli.printable import is_stdout, print_error, print_note
from agenticiqa.programs.errors import UserError
from agenticiqa.programs.images import path_of
from agenticiqa.programs.images.files import printable_path

FILES = ("jsonl", "csv", "html", "markdown", "latex", "log")
PAGES = (".html", ".htm", ".xhtml")
FOLDERS = ("save_maps", "parquet", "out")  # --out of evaluate


class Output(NamedTuple):
    """A file or folder that an option names or that belongs to such a file; in ``path``, links are resolved."""

    option: str
    name: Path
    path: Path
    is_folder: bool


def check_outputs(args: Namespace, jobs: Iterable[Job] = (), *files: str | os.PathLike[str] | None) -> None:
    """Make the folders of all outputs, and check that each output can be written.

    Raises UserError for an output that is a folder instead of a file or vice versa, cannot be written, conflicts with
    another output, or is one that the command reads: one of the ``files``, or an image or reference of the ``jobs``.
    """
    outputs = [*_outputs(args)]
    sources = [source for job in jobs for source in (job.image, job.reference) if source is not None]
    read = {os.path.abspath(path) for path in (*files, *map(path_of, sources)) if path}
    for number, output in enumerate(outputs):
        place = printable_path(output.name)
        if output.is_folder and os.path.exists(output.path) and not os.path.isdir(output.path):
            raise UserError(f"{place}: {output.option} needs a folder, but this is a file; name another folder")
        if not output.is_folder and os.path.isdir(output.path):
            raise UserError(f"{place}: {output.option} needs a file, but this is a folder; name another file")
        if not output.is_folder and {str(output.path), os.path.abspath(output.name)} & read:
            raise UserError(
                f"{place}: {output.option} would overwrite a file that the command reads; name another file"
            )
        if output.option == "--html" and not output.is_folder and output.name.suffix.lower() not in PAGES:
            raise UserError(f"{place}: --html writes a page; name an .html file")
        for other in outputs[:number]:
            if _collide(output, other) or _collide(other, output):
                raise UserError(
                    f"{place}: {output.option} conflicts with {other.option} ({printable_path(other.name)}); name "
                    "another path"
                )
    for output in outputs:
        _check_writable(output)


def write_all(outputs: Iterable[tuple[str, Path | str | None, Callable[[], None]]]) -> list[bool]:
    """Write each requested output, even after another one failed; return whether each was written.

    An output is its name in messages, its path (``None`` if not requested), and the function that writes it. An OSError
    is printed in one line, not raised.
    """
    done = []
    for name, path, write in outputs:
        if path is None:
            continue
        try:
            write()
        except OSError as error:
            print_error(f"{printable_path(path)}: cannot be written ({error.strerror or error})")
            done.append(False)
        else:
            done.append(True)
            if not is_stdout(path):
                print_note(f"The {name} was written to {printable_path(path)}")
    return done


def _outputs(args: Namespace) -> Iterable[Output]:
    for name in (*FILES, *FOLDERS):
        value = vars(args).get(name)
        if value is None or is_stdout(value) or "://" in str(value):  # addresses are checked when they are opened
            continue
        option, path = f"--{name.replace('_', '-')}", Path(value)
        yield Output(option, path, Path(os.path.realpath(path)), name in FOLDERS)
        if os.path.isdir(path):
            continue
        if name == "jsonl":
            summary = path.with_name(f"{path.name}.summary.json")
            yield Output(option, summary, Path(os.path.realpath(summary)), False)
        if name == "html":
            from agenticiqa.programs.page.thumbnails import folder_beside  # an import of Pillow

            folder = folder_beside(path)
            yield Output(option, folder, Path(os.path.realpath(folder)), True)


def _collide(one: Output, other: Output) -> bool:
    """Return whether one is a file where the other needs a folder. Special files such as /dev/null never collide."""
    if one.is_folder or _is_special(one.path):
        return False
    return one.path == other.path or one.path in other.path.parents


def _is_special(path: Path) -> bool:
    """Return whether a path is a device or a pipe."""
    return os.path.exists(path) and not (os.path.isfile(path) or os.path.isdir(path))


def _check_writable(output: Output) -> None:
    """Make the folder of an output, and create and delete a file in it. Raises UserError if that fails."""
    if _is_special(output.path):
        return
    folder = output.path if output.is_folder else output.path.parent
    draft = folder / f".{secrets.token_hex(8)}.part"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if not output.is_folder:
            output.path.exists()  # an OSError for a name that is too long
        draft.touch(exist_ok=False)
        draft.unlink()
    except OSError as error:
        place = printable_path(output.name)
        raise UserError(
            f"{place}: {output.option} cannot be written there ({error.strerror}); name another path"
        ) from error
