"""Check the outputs of a command before the first image, and report failed writes after the last one."""

import os
import secrets
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from agenticiqa.configs.options import Arguments, Option, Writes, options_of
from agenticiqa.programs.batch.job import Job
from agenticiqa.programs.cli.printable import is_stdout, print_error, print_note
from agenticiqa.programs.cli.streams import reason_of
from agenticiqa.programs.errors import UserError
from agenticiqa.programs.images import path_of
from agenticiqa.programs.images.files import make_folder, printable_path, write_atomically
from agenticiqa.programs.images.sources import StoredImage

if TYPE_CHECKING:  # light commands have no configuration
    from agenticiqa.configs import Config

PAGES = (".html", ".htm", ".xhtml")
OF_A_RUN = ("results.jsonl", "run.json", "report.json")
IN_FOLDERS = (  # files that a command reads in a folder that an argument names
    *("labels.*", "metadata.*", "*.parquet", "*.arrow", "state.json", "dataset_dict.json"),
    *("prompts.json", "fusion.yaml"),
)


class Place(NamedTuple):
    """A file or folder that an option names or that belongs to such a file; in ``path``, links are resolved.

    Unless ``is_needed``, the folder is made only if the command has something to write there.
    """

    option: str
    name: Path
    path: Path
    is_folder: bool = False
    is_page: bool = False
    is_needed: bool = True


class Output(NamedTuple):
    """An output: its name in messages, its path (``None`` if not requested), and the function that makes its content.

    Only a text can go to stdout.
    """

    name: str
    path: Path | str | None
    make: Callable[[], str | bytes]


def check_outputs(
    args: Arguments,
    jobs: Iterable[Job] = (),
    config: "Config | None" = None,
    *,
    written: Iterable[Path] = (),
) -> None:
    """Make the folders of all outputs, and check that each output can be written.

    ``written`` are further files that the command writes. Raises UserError as ``refuse_inputs`` does, for two outputs
    on stdout, and for an output that is a folder instead of a file or vice versa, cannot be written, or conflicts with
    another output.
    """
    _refuse_two_on_stdout(args)
    sources = [source for job in jobs for source in (job.image, job.reference) if source is not None]
    files = (source.place[0] if isinstance(source, StoredImage) else path_of(source) for source in sources)
    refuse_inputs(args, filter(None, files), config, written=written)
    outputs = [*_places(args), *_written(args, written)]
    for number, output in enumerate(outputs):
        place = printable_path(output.name)
        if output.is_folder and os.path.exists(output.path) and not os.path.isdir(output.path):
            raise UserError(f"{place}: {output.option} needs a folder, but this is a file; name another folder")
        if not output.is_folder and os.path.isdir(output.path):
            raise UserError(f"{place}: {output.option} needs a file, but this is a folder; name another file")
        if output.is_page and output.name.suffix.lower() not in PAGES:
            raise UserError(f"{place}: {output.option} writes a page; name an .html file")
        for other in outputs[:number]:
            if _collide(output, other) or _collide(other, output):
                raise UserError(
                    f"{place}: {output.option} conflicts with {other.option} ({printable_path(other.name)}); name "
                    "another path"
                )
    for output in outputs:
        _check_writable(output)


def refuse_inputs(
    args: Arguments,
    files: Iterable[str | os.PathLike[str]] = (),
    config: "Config | None" = None,
    *,
    written: Iterable[Path] = (),
) -> None:
    """Raise UserError for an output that is a file which the command reads, also by another name (a link).

    These are the ``files``, all other arguments that name files, and what the configuration names.
    """
    named = [*_named(args)]
    read = {os.path.abspath(path) for path in (*files, *named)}
    if config is not None:
        from agenticiqa.configs.schema import VARIABLE  # an import that commands without a configuration do not need

        read |= {os.path.abspath(path) for path in (*config.files, os.environ.get(VARIABLE)) if path}
    folders, in_folders = {*map(os.path.realpath, named)}, IN_FOLDERS + (OF_A_RUN if hasattr(args, "runs") else ())
    for output in (*_places(args), *_written(args, written)):
        if output.is_folder or os.path.isdir(output.path):
            continue
        is_read = bool({str(output.path), os.path.abspath(output.name)} & read)
        if os.path.isfile(output.path):
            is_read |= str(output.path.parent) in folders and any(map(output.path.match, in_folders))
            is_read |= any(os.path.exists(path) and os.path.samefile(path, output.path) for path in read)
        if is_read:
            place = printable_path(output.name)
            raise UserError(
                f"{place}: {output.option} would overwrite a file that the command reads; name another file"
            )


def _named(args: Arguments) -> Iterator[str]:
    """Yield the texts and paths among the arguments that may name inputs."""
    inputs = [option.name for option in options_of(type(args)) if not (option.writes or option.key)]
    for value in (*args.keys.values(), *(getattr(args, name) for name in inputs if name != "query")):
        for item in value if isinstance(value, list | tuple) else [value]:
            if isinstance(item, str | os.PathLike) and item != "":
                yield os.fspath(item)


def _refuse_two_on_stdout(args: Arguments) -> None:
    printed: list[str] = []
    for option in _outputs(args):
        value, flag = getattr(args, option.name), option.flags[-1]
        if option.writes in (Writes.FILE, Writes.RESULTS) and is_stdout(value):
            printed.append(f"{flag} -")
        elif option.writes is Writes.STDOUT and value:
            printed.append(flag)
    if len(printed) > 1:
        first, second = printed[:2]
        remedy = next((f", or give {flag.removesuffix(' -')} a file" for flag in printed if flag.endswith(" -")), "")
        raise UserError(f"{first} and {second} both print to stdout: leave one out{remedy}")


def write_all(outputs: Iterable[Output]) -> list[bool]:
    """Write each requested output, even after another one failed; return whether each was written.

    A file is written atomically, and ``-`` is stdout. An OSError is printed in one line, not raised.
    """
    done = []
    for name, path, make in outputs:
        if path is None:
            continue
        try:
            content = make()
            if isinstance(content, str) and is_stdout(path):
                sys.stdout.write(content)
            else:
                write_atomically(path, content)
        except OSError as error:
            print_error(f"{printable_path(path)}: cannot be written ({reason_of(error)})")
            done.append(False)
        else:
            done.append(True)
            if not is_stdout(path):
                print_note(f"The {name} was written to {printable_path(path)}")
    return done


def _place(option: str, path: Path, *, is_folder: bool = False, is_page: bool = False, is_needed: bool = True) -> Place:
    resolved = path if _is_special(path) else Path(os.path.realpath(path))  # that of a pipe is no file
    return Place(option, path, resolved, is_folder, is_page, is_needed)


def _written(args: Arguments, files: Iterable[Path]) -> list[Place]:
    return [_place("--parquet" if getattr(args, "parquet", None) else "--out", path) for path in files]


def _outputs(args: Arguments) -> list[Option]:
    return [option for option in options_of(type(args)) if option.writes]


def _places(args: Arguments) -> Iterator[Place]:
    """Yield what the options of a command name, with what belongs to it."""
    for option in _outputs(args):
        value, flag = getattr(args, option.name), option.flags[-1]
        is_page = option.writes in (Writes.PAGE, Writes.SHEET)
        is_printed = option.writes is Writes.STDOUT or (is_stdout(value) and not is_page)
        if value is None or is_printed or "://" in str(value):  # an address, checked later
            continue
        path = Path(value)
        yield _place(flag, path, is_folder=option.writes is Writes.FOLDER, is_page=is_page)
        if os.path.isdir(path):
            continue
        if option.writes is Writes.RESULTS:
            if path.is_fifo():
                raise UserError(f"{path}: {flag} needs a file, but this is a pipe; write {flag} - | COMMAND")
            yield _place(flag, path.with_name(f"{path.name}.summary.json"))
        if option.writes is Writes.SHEET:
            from agenticiqa.programs.page.thumbnails import folder_beside  # an import of Pillow

            yield _place(flag, folder_beside(path), is_folder=True, is_needed=False)


def _collide(one: Place, other: Place) -> bool:
    """Return whether one is a file where the other needs a folder. Special files such as /dev/null never collide."""
    if one.is_folder or _is_special(one.path):
        return False
    return one.path == other.path or one.path in other.path.parents


def _is_special(path: Path) -> bool:
    """Return whether a path is a device or a pipe."""
    return os.path.exists(path) and not (os.path.isfile(path) or os.path.isdir(path))


def _check_writable(output: Place) -> None:
    """Make the folder of an output, and create and delete a file in it. Raises UserError if that fails."""
    if _is_special(output.path) or not (output.is_needed or output.path.exists()):
        return
    folder = output.path if output.is_folder else output.path.parent
    draft = folder / f".{secrets.token_hex(8)}.part"
    try:
        make_folder(folder)
        if not output.is_folder:
            output.path.exists()  # an OSError for a name that is too long
        draft.touch(exist_ok=False)
        draft.unlink()
    except OSError as error:
        place = printable_path(output.name)
        raise UserError(
            f"{place}: {output.option} cannot be written there ({error.strerror}); name another path"
        ) from error
