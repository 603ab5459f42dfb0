"""Check the outputs of a command before the first image, and report failed writes after the last one."""

import os
import secrets
import sys
from argparse import Namespace
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from agenticiqa.programs.batch.job import Job
from agenticiqa.programs.cli.parser import OUTPUT_FOLDERS, OUTPUTS
from agenticiqa.programs.cli.printable import is_stdout, print_error, print_note
from agenticiqa.programs.errors import UserError
from agenticiqa.programs.images import path_of
from agenticiqa.programs.images.files import printable_path, write_atomically

if TYPE_CHECKING:  # light commands have no configuration
    from agenticiqa.configs import Config

PAGES = (".html", ".htm", ".xhtml")
NO_INPUTS = {*OUTPUTS, "argv", "command", "query"}  # arguments that name no input
OF_A_RUN = ("results.jsonl", "run.json", "report.json")
IN_FOLDERS = (  # files that a command reads in a folder that an argument names
    *("labels.*", "metadata.*", "*.parquet", "*.arrow", "state.json", "dataset_dict.json"),
    *("prompts.json", "fusion.yaml"),
)


class Output(NamedTuple):
    """A file or folder that an option names or that belongs to such a file; in ``path``, links are resolved."""

    option: str
    name: Path
    path: Path
    is_folder: bool
    is_page: bool


def check_outputs(
    args: Namespace,
    jobs: Iterable[Job] = (),
    config: "Config | None" = None,
    *,
    written: Iterable[Path] = (),
) -> None:
    """Make the folders of all outputs, and check that each output can be written.

    ``written`` are further files that the command writes. Raises UserError as ``refuse_inputs`` does, and for an output
    that is a folder instead of a file or vice versa, cannot be written, or conflicts with another output.
    """
    sources = [source for job in jobs for source in (job.image, job.reference) if source is not None]
    refuse_inputs(args, filter(None, map(path_of, sources)), config, written=written)
    outputs = [*_outputs(args), *_written(args, written)]
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
    args: Namespace,
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
    folders, in_folders = {*map(os.path.realpath, named)}, IN_FOLDERS + (OF_A_RUN if "runs" in args else ())
    for output in (*_outputs(args), *_written(args, written)):
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


def _named(args: Namespace) -> Iterator[str]:
    """Yield the texts and paths among the arguments that may name inputs."""
    for name in vars(args).keys() - NO_INPUTS:
        value = vars(args)[name]
        for item in value if isinstance(value, list | tuple) else [value]:
            if isinstance(item, str | os.PathLike) and item != "":
                yield os.fspath(item)


def write_all(outputs: Iterable[tuple[str, Path | str | None, Callable[[], str]]]) -> list[bool]:
    """Write each requested output, even after another one failed; return whether each was written.

    An output is its name in messages, its path (``None`` if not requested), and the function that makes its text. A
    file is written atomically, and ``-`` is stdout. An OSError is printed in one line, not raised.
    """
    done = []
    for name, path, make in outputs:
        if path is None:
            continue
        try:
            text = make()
            if is_stdout(path):
                sys.stdout.write(text)
            else:
                write_atomically(path, text)
        except OSError as error:
            print_error(f"{printable_path(path)}: cannot be written ({error.strerror or error})")
            done.append(False)
        else:
            done.append(True)
            if not is_stdout(path):
                print_note(f"The {name} was written to {printable_path(path)}")
    return done


def _output(option: str, path: Path, *, is_folder: bool = False, is_page: bool = False) -> Output:
    return Output(option, path, Path(os.path.realpath(path)), is_folder, is_page)


def _written(args: Namespace, files: Iterable[Path]) -> list[Output]:
    return [_output("--parquet" if vars(args).get("parquet") else "--out", path) for path in files]


def _outputs(args: Namespace) -> Iterable[Output]:
    command = str(vars(args).get("command"))  # --out is a file of calibrate, a page of rate, else a folder
    for name in OUTPUTS:
        value = vars(args).get(name)
        is_page = name == "html" or (name == "out" and command == "rate")
        if value is None or (is_stdout(value) and not is_page) or "://" in str(value):  # an address, checked later
            continue
        option, path = f"--{name.replace('_', '-')}", Path(value)
        is_folder = name in OUTPUT_FOLDERS or (name == "out" and not command.startswith(("calibrate", "rate")))
        yield _output(option, path, is_folder=is_folder, is_page=is_page)
        if os.path.isdir(path):
            continue
        if name == "jsonl":
            yield _output(option, path.with_name(f"{path.name}.summary.json"))
        if name == "out" and "tool" in args:
            yield _output(option, path.with_suffix(".png"))
        if name == "html":  # a page with thumbnails in a folder beside it
            from agenticiqa.programs.page.thumbnails import folder_beside  # an import of Pillow

            yield _output(option, folder_beside(path), is_folder=True)


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
