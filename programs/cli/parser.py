"""Parse the command line: subcommands, ``--version``, shell completion, and one-line errors with suggestions."""

import argparse
import itertools
import os
import re
import shlex
import sys
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from importlib.metadata import version
from textwrap import fill
from typing import Any, NoReturn, cast

import shtab

from agenticiqa.configs.options import Arguments, Group, Option, options_of
from agenticiqa.configs.spelling import did_you_mean
from agenticiqa.programs.cli.arguments import LoggedOptions
from agenticiqa.programs.cli.commands import Command
from agenticiqa.programs.cli.status import USAGE
from agenticiqa.programs.errors import UserError

PROGRAM = "agenticiqa"
WIDTH = 78  # characters of a line of help
DESCRIPTION = """\
Assess the quality of images. The program plans what to inspect, measures it, asks a
vision-language model if you name one, and returns a score or an answer with the evidence.
By default it works offline: it needs no key, downloads nothing and sends nothing.
"""
EXAMPLES = """\
examples:
  agenticiqa assess photo.jpg                              score a photo, 1 (bad) to 5 (excellent)
  agenticiqa assess photo.jpg --query "Is the sky noisy?"  ask a question about its quality
  agenticiqa assess album/ --jsonl scores.jsonl            score a folder, one JSON line per image
  agenticiqa assess photo.jpg --save-maps maps/            draw a map of the damaged areas
  agenticiqa measure ssim out/ --reference ref/            print the values of a metric
  agenticiqa gate uploads/ --policy mine.yaml              accept or refuse photos
  agenticiqa rate album/ --out rate.html                   write a page on which you rate photos
  agenticiqa tools                                         list the metrics
  agenticiqa COMMAND --help                                show options and examples of a command

exit status:
  0    all images were processed
  1    some images failed
  2    wrong usage
  3    some images have no score
  4    an image scores below --fail-under, or is refused by gate
  130  interrupted by Ctrl-C
"""

# Names of options in other programs, and the option to suggest if the command has it.
ELSEWHERE = {
    "--model": "--backend",
    "--output": "--jsonl",
    "--out": "--jsonl",
    "-o": "--jsonl",
    "--top": "--worst",
    "--base-url": "--api-base",
    "--question": "--query",
    "--prompt": "--query",
    "--threads": "--workers",
    "--threshold": "--fail-under",
    "--format": "--csv",
}

# The option for an output with this suffix, which is suggested for ``--output FILE``.
BY_SUFFIX = {
    ".csv": "--csv",
    ".html": "--html",
    ".md": "--markdown",
    ".tex": "--latex",
    ".parquet": "--parquet",
}

UNQUOTED = "{}: a name with blanks needs quotes: write {}"
MOST_BLANKS = 8  # blanks in a name that a shell has split
STDOUT = {"/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"}
_IMAGE = re.compile(r"\.(jpe?g|png|webp|tiff?|bmp|gif|heic|avif)$", re.IGNORECASE)


class Parser(argparse.ArgumentParser):
    """A parser that reports an error in one line, without the usage."""

    def error(self, message: str) -> NoReturn:
        """Print the message and exit with status 2."""
        self.exit(USAGE, f"{self.prog}: {message}; see {self.prog} --help\n")

    def exit(self, status: int = 0, message: str | None = None) -> NoReturn:
        """Exit after the help is written. Raises OSError if that fails."""
        sys.stdout.flush()
        super().exit(status, message)


def parse(argv: Sequence[str], commands: Mapping[str, Command]) -> tuple[Command, Arguments]:
    """Return the command that the words name, with its options and arguments.

    Exit for --help, --version and wrong usage. Raises UserError for a number that is too small.
    """
    if argv[:1] == ["help"]:
        argv = [*argv[1:], "--help"]
    parser, subparsers = _parsers(commands, loaded=[name for name in commands if {*name.split()} <= {*argv}])
    for word in itertools.takewhile("--".__ne__, argv):
        if word.startswith("-") and "." in word and os.path.exists(word):
            parser.error(f"{word} is a file, but its name begins with a dash like an option: write ./{word}")
    if argv and not argv[0].startswith("-"):
        if argv[0] not in commands:
            parser.error(_no_command(argv, commands))
        if not commands[argv[0]].module and not {*argv[1:2]} & {"-h", "--help"}:
            _check_second_word(argv, commands, subparsers[argv[0]])
        _check_options(argv, commands, subparsers)
    args, unknown = parser.parse_known_args(argv)
    if args.command is None:
        if unknown:
            parser.error(_unexpected(unknown, ["--version", "--print-completion", *_flags(options_of(LoggedOptions))]))
        parser.print_help(sys.stderr)
        parser.exit(USAGE)
    command, values = commands[args.command], vars(args)
    if unknown:
        subparsers[args.command].error(_unexpected(unknown, _flags(command.options), argv))
    for option in command.options:
        value = values[option.name]
        if option.at_least is not None and value is not None and value < option.at_least:
            raise UserError(f"{option.flags[0]} must be at least {option.at_least:g}, got {value:g}")
        if value and _names_files(option) and not (option.name == "images" and values.get("parquet")):
            values[option.name] = _existing(option, value)
        if option.writes and str(value) in STDOUT:
            values[option.name] = option.type("-")
    fields = {option.name: values[option.name] for option in command.options if not option.key}
    keys = {option.name: values[option.name] for option in command.options if option.key}
    given = {name: value for name, value in keys.items() if value not in (None, "")}
    return command, command.arguments(**fields, keys=given, argv=[*argv])


def _names_files(option: Option) -> bool:
    """Return whether the value of an option names files or folders that the command reads."""
    words = {*re.findall(r"\w+", option.metavar)}
    return not option.writes and bool(words & ({"FILE", "DIR"} if option.flags else COMPLETED.keys()))


def _existing(option: Option, value: Any) -> Any:
    """Return the paths that a value stands for, as ``names.expanded`` does.

    A name without a path, such as that of a metric or data set, is left as it is; so is one that several files match,
    unless the option takes several. What a pattern finds in system folders is left out later. Raises UserError for the
    words of an existing name with blanks.
    """
    words = [*map(str, value)] if isinstance(value, list) else [str(value)]
    if name := _split_name(words):
        raise UserError(UNQUOTED.format(name, shlex.quote(name)))
    if all(os.path.exists(word) or not {*word} & {*"*?[.", os.sep} for word in words):
        return value
    from agenticiqa.programs.images.finding import in_system_folder  # imports of NumPy and Pillow
    from agenticiqa.programs.images.names import expanded

    paths: list[str] = []
    for word in words:
        found = expanded(word)
        if found != [word] and any(in_system_folder(path, word) for path in found):
            paths.append(word)
        else:
            paths += found
    if isinstance(value, list):
        return [option.type(path) for path in paths]
    return option.type(paths[0]) if len(paths) == 1 else value


def completion(shell: str, commands: Mapping[str, Command]) -> str:
    """Return the script that completes commands, options and files in a shell."""
    parser, _ = _parsers(commands, loaded=commands)
    return str(shtab.complete(parser, shell=shell))


def _no_command(argv: Sequence[str], commands: Collection[str]) -> str:
    """Return the message for a first word that is no command."""
    if os.path.exists(argv[0]) or _IMAGE.search(argv[0]):
        return f"{argv[0]} is not a command; to assess it, run: {PROGRAM} assess {shlex.join(argv)}"
    names = [name for name in commands if " " not in name]
    return f"unknown command {argv[0]!r}{did_you_mean(argv[0], names, ', '.join(names))}"


def _check_second_word(argv: Sequence[str], commands: Collection[str], group: argparse.ArgumentParser) -> None:
    """Exit with a one-line message if the second word names no command of the group that the first word names."""
    names = [name.removeprefix(f"{argv[0]} ") for name in commands if name.startswith(f"{argv[0]} ")]
    word = " ".join(argv[1:2])
    if word not in names:
        expected = f"{', '.join(names[:-1])} or {names[-1]}"
        hint = did_you_mean(word, names)
        group.error(
            f"unknown command {word!r}{hint} Expected {expected}" if hint else f"name what to {argv[0]}: {expected}"
        )


def _check_options(
    argv: Sequence[str], commands: Mapping[str, Command], parsers: Mapping[str, argparse.ArgumentParser]
) -> None:
    """Exit for an option that the command does not have, because a missing argument would hide it."""
    name = next(name for name in (" ".join(argv[:2]), argv[0]) if name in commands)
    flags = _flags(commands[name].options)
    for word in itertools.takewhile("--".__ne__, argv):
        if word.startswith("--") and not any(flag.startswith(word.partition("=")[0]) for flag in (*flags, "--help")):
            parsers[name].error(_unexpected([word], [*flags, "--help"] if word.startswith("--h") else flags, argv))


def _unexpected(words: Sequence[str], known: Sequence[str], argv: Sequence[str] = ()) -> str:
    """Return the message for words that the parser did not take, with the known flag that the user probably meant."""
    wrong = [word for word in words if word.startswith("-")]
    if not wrong:
        if name := _split_name(argv):
            return UNQUOTED.format(name, shlex.quote(name))
        about = "; a question needs --query, because -q is --quiet" if "--query" in known else ""
        return f"unexpected argument {' '.join(words)!r}{about}"
    name = wrong[0].partition("=")[0]
    if name in known:
        return f"write {name} after the name of the command: {PROGRAM} COMMAND {name}"
    same = ELSEWHERE.get(name)
    if same == "--jsonl":
        value = wrong[0].partition("=")[2] or next(iter(argv[argv.index(wrong[0]) + 1 :]), "")
        same = BY_SUFFIX.get(os.path.splitext(value)[1].lower(), same)
    if same in known:
        return f"unknown option {name}, did you mean {same}?"
    return f"unknown option {name}{did_you_mean(name, [flag for flag in known if flag.startswith('--')])}"


def _split_name(words: Sequence[str]) -> str | None:
    """Return the name with blanks of an existing file or folder that a shell has split into these words, if any."""
    missing = [place for place, word in enumerate(words) if not os.path.exists(word)]
    for place in missing:
        for start in range(max(place - MOST_BLANKS, 0), place + 1):
            for end in range(place + 1, min(start + MOST_BLANKS, len(words)) + 1):
                name = " ".join(words[start:end])
                if end - start > 1 and os.path.exists(name):
                    return name
    return None


def _flags(options: Iterable[Option]) -> list[str]:
    flags = [flag for option in options for flag in option.flags]
    return flags + [f"--no-{option.flags[0].removeprefix('--')}" for option in options if option.negatable]


class _Print(argparse.Action):
    """An option that prints something and ends the program."""

    def __call__(self, parser: argparse.ArgumentParser, namespace: Any, values: Any, option: str | None = None) -> None:
        print(cast(Callable[[Any], str], self.const)(values))
        parser.exit()


# Shell completions of values, by their placeholders in the help.
COMPLETED = {
    **dict.fromkeys(("FILE", "IMAGE", "DATA", "LABELS", "PHOTOS", "TASK", "RESULTS"), shtab.FILE),
    **dict.fromkeys(("DIR", "RUN", "ALBUM"), shtab.DIRECTORY),
}


def _parsers(
    commands: Mapping[str, Command], loaded: Collection[str]
) -> tuple[Parser, dict[str, argparse.ArgumentParser]]:
    """Return the parser and the parser of each command; only the commands in ``loaded`` get their arguments."""
    parser = Parser(
        prog=PROGRAM, description=DESCRIPTION, epilog=EXAMPLES, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "-V",
        "--version",
        action=_Print,
        nargs=0,
        const=lambda _: f"{PROGRAM} {version(PROGRAM)}",
        help="print the version",
    )
    parser.add_argument(
        "--print-completion",
        metavar="SHELL",
        action=_Print,
        type=_one_of(shtab.SUPPORTED_SHELLS),
        choices=shtab.SUPPORTED_SHELLS,
        const=lambda shell: completion(shell, commands),
        help=f"print a completion script for {', '.join(shtab.SUPPORTED_SHELLS)}. "
        'To use it in bash, run: eval "$(agenticiqa --print-completion bash)"',
    )
    parser.set_defaults(command=None)
    groups = {"": parser.add_subparsers(metavar="COMMAND", title="commands", parser_class=Parser)}
    parsers: dict[str, argparse.ArgumentParser] = {}
    for name, command in commands.items():
        group, _, word = name.rpartition(" ")
        parsers[name] = groups[group].add_parser(
            word,
            help=command.help,
            description=command.help[0].upper() + command.help[1:] + ".",
            epilog=command.examples or None,
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        parsers[name].set_defaults(command=name)
        if not command.module:
            groups[name] = parsers[name].add_subparsers(metavar="COMMAND", title="commands", parser_class=Parser)
        elif name in loaded:
            add_options(parsers[name], command.options)
    return parser, parsers


def add_options(parser: Any, options: Iterable[Option]) -> None:
    """Add options to a parser, each in its groups."""
    made: dict[tuple[Group, ...], Any] = {(): parser}
    for option in options:
        for depth, group in enumerate(option.groups, 1):
            if option.groups[:depth] not in made:
                made[option.groups[:depth]] = _group(made[option.groups[: depth - 1]], group)
        _add_option(made[option.groups], option)


def _group(parent: Any, group: Group) -> Any:
    if group.one_of:
        return parent.add_mutually_exclusive_group(required=group.required)
    return parent.add_argument_group(group.title, group.about and fill(group.about, WIDTH))


def _one_of(choices: Sequence[str]) -> Callable[[str], str]:
    """Return a function that checks a value, and names the most similar choice for a misspelled one."""

    def checked(value: str) -> str:
        if value not in choices:
            raise argparse.ArgumentTypeError(
                f"unknown value {value!r}{did_you_mean(value, choices, ', '.join(choices))}"
            )
        return value

    return checked


def _add_option(parser: Any, option: Option) -> None:
    names = option.flags or (option.name,)
    settings: dict[str, Any] = {"help": option.help, "default": option.default}
    if option.flags:
        settings |= {"dest": option.name, "required": option.required}
    if option.negatable:
        settings["action"] = argparse.BooleanOptionalAction
    elif option.counted:
        settings["action"] = "count"
    elif option.type is not bool:
        words = tuple(option.metavar.split()) if option.flags else (option.metavar,)
        nargs = option.nargs or (len(words) if len(words) > 1 else None)
        settings |= {
            "type": _one_of(option.choices) if option.choices else option.type,
            "choices": option.choices or None,
            "metavar": words[0] if len(words) == 1 else words or None,
            "nargs": nargs,
            "action": "append" if option.several and nargs is None else "store",
        }
    elif option.key:
        settings |= {"action": "store_const", "const": not names[0].startswith("--no-")}
    else:
        settings["action"] = "store_true"
    action = parser.add_argument(*names, **settings)
    for word in re.findall(r"\w+", option.metavar):
        if word in COMPLETED:
            action.complete = COMPLETED[word]
