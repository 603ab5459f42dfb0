"""The arguments of the program's commands, and those that several commands share.

Only the parsers: what runs a command loads DSPy and numpy, which --help, --version and Tab have no use for.
"""

from argparse import Action, ArgumentParser, RawDescriptionHelpFormatter
from collections.abc import Callable
from pathlib import Path

import shtab

from agenticiqa.programs.backends.cores import WORKERS
from agenticiqa.signatures.vocabulary import DEFAULT_QUERY

ASSESS_EXAMPLES = """\
examples:
  agenticiqa assess photo.jpg                                  rate its quality, 1 (bad) to 5 (excellent)
  agenticiqa assess photo.jpg --reference original.png         compare it with its pristine original
  agenticiqa assess photo.jpg --query "Is the sky noisy?"      ask anything about its quality
  agenticiqa assess photo.jpg --query "Main flaw? A. Blur B. Noise"
  agenticiqa assess --jobs questions.jsonl --jsonl answers.jsonl --resume
  agenticiqa assess album/                                     a ranking, the worst first (-v: each in full)
  agenticiqa assess album/ --jsonl scores.jsonl --resume       keep each result; continue an earlier run
  agenticiqa assess photo.jpg --save-maps maps/                draw where it is bad: maps/photo.png
  agenticiqa assess album/ --html sheet.html --worst 10        a contact sheet, and the ten worst
  agenticiqa assess exports/ --fail-under 3                    for a script: status 4 if an image is worse
  agenticiqa assess photo.jpg --backend openai.gpt-4o          let a vision-language model look, too
  agenticiqa assess album/ --config mine.yaml --dry-run        estimate the cost, send nothing
  agenticiqa assess archive/ --parquet scores/                 a Parquet file for each 256; run it again to go on
  curl -s https://example.org/a.jpg | agenticiqa assess -      an image on stdin

exit status: 0 all judged, 1 some failed (named on stderr), 2 usage, or nothing could be judged,
3 none failed, but some have no score or answer, as the model gave no usable one (--resume judges them again),
4 all judged, but an image scores below --fail-under
"""
COMPARE_EXAMPLES = """\
examples:
  agenticiqa compare a.jpg b.webp c.avif --reference original.png   which one keeps most of the original
  agenticiqa compare shot1.jpg shot2.jpg shot3.jpg                  which shot is best
  agenticiqa compare a.jpg b.webp --reference o.png --html both.html

exit status: 0 all judged, 1 some failed (named on stderr), 2 usage, or nothing could be judged,
3 none failed, but some have no score
"""

BATCHES_EXAMPLES = """\
examples:
  agenticiqa assess album/ --config mine.yaml --batch --jsonl scores.jsonl            send; Ctrl-C leaves it under way
  agenticiqa batches scores.jsonl                                                     what is under way
  agenticiqa assess album/ --config mine.yaml --batch --jsonl scores.jsonl --resume   collect, and go on
  agenticiqa batches scores.jsonl --cancel                                            end it early
"""


def add_assess_arguments(parser: ArgumentParser) -> None:
    """The options of ``agenticiqa assess``."""
    parser.epilog, parser.formatter_class = ASSESS_EXAMPLES, RawDescriptionHelpFormatter
    source = parser.add_mutually_exclusive_group(required=True)
    images = source.add_argument(
        "images", nargs="*", default=[], metavar="IMAGE", help="image files, folders of them, or - for stdin"
    )
    jobs = source.add_argument(
        "--jobs",
        metavar="FILE",
        help="judge the rows of FILE: JSON lines or CSV with image and, if they have their own, query, options and "
        "reference, or a path on each line; - reads them from stdin",
    )
    reference = parser.add_argument(
        "--reference",
        metavar="R",
        help="the pristine original, or a folder of them: that of the same path in it, else the only one of that name",
    )
    parser.add_argument(
        "--resize-reference", action="store_true", help="scale a reference of another size to the image's"
    )
    parser.add_argument(
        "--align",
        action="store_true",
        help="compare what image and reference both show: a shift, a crop or another scale is found and undone",
    )
    parser.add_argument(
        "--query", metavar="Q", default=DEFAULT_QUERY, help=f'the question (default: "{DEFAULT_QUERY}")'
    )
    parser.add_argument(
        "--option",
        metavar="TEXT",
        action="append",
        dest="options",
        help="an answer to choose from, once for each of 2 to 26: the answer is then a letter, A for the first",
    )
    add_backend_arguments(parser)
    output = parser.add_mutually_exclusive_group()
    output.add_argument(
        "--json",
        action="store_true",
        help="print one JSON object; of a folder, rows or several images a list, where what failed has image and error",
    )
    results = output.add_argument(
        "--jsonl",
        metavar="FILE",
        help="append one JSON line for each image as it is finished, and write FILE.summary.json; - prints the lines, "
        "also of what failed",
    )
    add_shard_arguments(parser, output.add_argument)
    parser.add_argument(
        "--resume",
        action="store_true",
        help="with --jsonl FILE: leave out images that FILE has a result of, for the same files, question and settings",
    )
    parser.add_argument(
        "--fuse",
        choices=("default", "auto"),
        default="default",
        help="auto, with --jsonl or --parquet: after 50 or more images that a model rated, find out from them how far "
        "it is to be trusted, and let the rows show the score of that; the default's stays beside it",
    )
    maps = parser.add_argument(
        "--save-maps",
        metavar="DIR",
        type=Path,
        help="draw each image that is judged, where it is bad, and its scores: PNGs in DIR, in folders named as those "
        "of the images; map in a result is the path of its PNG, which replaces an earlier one of the same image",
    )
    add_overview_arguments(parser)
    add_workers_argument(parser)
    add_dry_run_argument(parser)
    add_batch_argument(parser)
    for argument in (images, reference, jobs, results):
        complete_files(argument)
    complete_folders(maps)


def add_shard_arguments(parser: ArgumentParser, add_output: Callable[..., Action]) -> None:
    """The options of a run over shards."""
    folder = add_output(
        "--parquet",
        metavar="DIR",
        help="write a Parquet file into DIR, a folder or an address such as s3://..., for each shard of the images; "
        "images may then also be globs, s3:// and gs:// addresses, .csv or .parquet tables, .tar shards and saved data "
        "sets. The same command continues what was interrupted",
    )
    parser.add_argument(
        "--shard-images", metavar="N", type=int, default=256, help="with --parquet: images of a shard (default: 256)"
    )
    parser.add_argument(
        "--engine",
        choices=("local", "ray"),
        default="local",
        help="with --parquet: ray judges on the Ray cluster at $RAY_ADDRESS, or on one that is started here; "
        "--workers is then the number of worker processes (default: one per processor)",
    )
    parser.add_argument(
        "--in-flight", metavar="N", type=int, help="with --engine ray: requests to a server at a time, of all workers"
    )
    complete_folders(folder)


def add_raw_csv(add_argument: Callable[..., Action]) -> None:
    """The option that leaves the cells of CSV as they are."""
    add_argument(
        "--raw-csv",
        action="store_true",
        help="leave texts in CSV as they are; else one that begins with = + - @ gets an apostrophe before it, as a "
        "spreadsheet would run it as a formula (numbers stay numbers), and control characters become blanks",
    )


def add_overview_arguments(parser: ArgumentParser) -> None:
    """The options for all results together."""
    group = parser.add_argument_group(
        "overview", "Of all images together; the results themselves are then only shown with --json or --jsonl."
    )
    add_tables(group.add_argument, "the scores and distortions")
    group.add_argument("--worst", metavar="N", type=int, help="print the N images of the lowest score")
    group.add_argument(
        "--fail-under",
        metavar="SCORE",
        type=float,
        help="exit with status 4 if an image scores below this, 1 to 5, and with 3 if one has no score (results are "
        "shown as usual)",
    )


def add_tables(add_argument: Callable[..., Action], content: str) -> None:
    """The options for a page and a table of all images; ``content`` is what the table has of each."""
    page = add_argument(
        "--html",
        metavar="FILE",
        type=Path,
        help="write a contact sheet: every image by score, filtered by distortion; loads nothing from elsewhere",
    )
    table = add_argument("--csv", metavar="FILE", type=Path, help=f"write a table of {content}; - prints it")
    add_raw_csv(add_argument)
    complete_files(page)
    complete_files(table)


def add_compare_arguments(parser: ArgumentParser) -> None:
    """The options of ``agenticiqa compare``."""
    parser.epilog, parser.formatter_class = COMPARE_EXAMPLES, RawDescriptionHelpFormatter
    complete_files(parser.add_argument("images", metavar="IMAGE", nargs="+", help="image files to compare"))
    add_image_options(parser)


def add_image_options(parser: ArgumentParser) -> None:
    """The options of a comparison of images."""
    group = parser.add_argument_group("images", "Of a comparison of image files.")
    complete_files(group.add_argument("--reference", metavar="R", help="the pristine original of all of them"))
    group.add_argument("--resize-reference", action="store_true", help="scale the reference to each image's size")
    group.add_argument("--align", action="store_true", help="compare what image and reference both show")
    group.add_argument("--json", action="store_true", help="print one JSON object, the images in the order of rank")
    complete_files(
        group.add_argument(
            "--html", metavar="FILE", type=Path, help="write a page with the images and maps side by side"
        )
    )
    complete_folders(
        group.add_argument(
            "--save-maps", metavar="DIR", type=Path, help="draw each image and where it is bad, into DIR"
        )
    )
    add_backend_arguments(parser)
    add_workers_argument(parser)


def add_backends_arguments(parser: ArgumentParser) -> None:
    """The options of ``agenticiqa backends``."""
    add_model_arguments(parser)
    parser.add_argument(
        "--probe", action="store_true", help="ask each model a small question, to find out what its server refuses"
    )
    parser.add_argument("--json", action="store_true", help="print JSON instead of tables")


def add_batches_arguments(parser: ArgumentParser) -> None:
    """The options of ``agenticiqa batches``."""
    parser.epilog, parser.formatter_class = BATCHES_EXAMPLES, RawDescriptionHelpFormatter
    complete_files(
        parser.add_argument("run", metavar="RUN", help="the file or folder of results of a run with --batch")
    )
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--collect", action="store_true", help="keep the answers of batches that have ended")
    what.add_argument(
        "--cancel",
        metavar="N",
        type=int,
        nargs="*",
        help="cancel these batches, or all; what is answered already is kept, and paid",
    )
    parser.add_argument("--json", action="store_true", help="print a JSON list instead of a table")


def add_tools_arguments(parser: ArgumentParser) -> None:
    """The options of ``agenticiqa tools``."""
    parser.add_argument("--json", action="store_true", help="print a JSON list instead of a table")
    config = parser.add_argument("--config", metavar="C", help="configuration file with a calibration or pyiqa metrics")
    complete_files(config)


def add_model_arguments(parser: ArgumentParser) -> Callable[..., Action]:
    """The options that name the models: ``models_from`` reads them. Returns what adds to their group of the help."""
    add = parser.add_argument_group("models", "Without them the program is offline: nothing is sent.").add_argument
    add(
        "--backend",
        metavar="B",
        help="the model for every stage: openai.gpt-4o, vllm.MODEL, ... or offline; "
        "agenticiqa backends lists the providers",
    )
    add("--api-base", metavar="URL", help="with --backend: the address of an OpenAI-compatible server")
    complete_files(add("--config", metavar="C", help="configuration file (default: $AGENTICIQA_CONFIG, else offline)"))
    return add


def add_adapter_argument(add: Callable[..., Action]) -> None:
    """The option that adapts the learned scorer."""
    adapter = add("--adapter", metavar="FILE", help="score by your own labels: what calibrate --adapt wrote")
    complete_files(adapter)


def add_backend_arguments(parser: ArgumentParser) -> None:
    """The options of commands that ask models: ``config_from`` and ``limits_from`` read them."""
    add = add_model_arguments(parser)
    add_adapter_argument(add)
    add(
        "--profile",
        choices=("full", "fast", "levels"),
        help="fast: at most two calls to a model per image, measurements instead of the others; levels: one, for the "
        "probabilities of five words, and no agent (default: full)",
    )
    add(
        "--max-side",
        metavar="PIXELS",
        type=int,
        help="send scaled-down copies of larger images to a model, which changes their quality (default: no scaling)",
    )
    prompts = add(
        "--prompts",
        metavar="P",
        help="tuned prompts: the folder that optimize wrote, whose fusion profile is used too, or its prompts.json",
    )
    complete_files(prompts)
    add("--no-cache", action="store_true", help="do not reuse a model's earlier answers")
    add("--max-calls", metavar="N", type=int, help="stop before more calls to a model than this")
    add("--max-usd", metavar="M", type=float, help="stop before more is spent than this (needs price in --config)")


def add_dry_run_argument(parser: ArgumentParser) -> None:
    """The option that estimates the cost of a run."""
    parser.add_argument(
        "--dry-run",
        action="store_true",
        help="estimate calls, tokens and (with price in --config) USD, and send nothing",
    )


def add_batch_argument(parser: ArgumentParser) -> None:
    """The options that send requests as batches."""
    parser.add_argument(
        "--batch",
        action="store_true",
        help="send requests as batches, at half the price, answered within 24 hours (openai, also at other servers "
        "that have its batches; vllm: as files for vllm run-batch); after Ctrl-C or a crash the same command (assess: "
        "with --resume) goes on; see agenticiqa batches",
    )
    parser.add_argument(
        "--image-urls",
        metavar="PREFIX",
        help="with --batch: requests carry addresses of images in place of their bytes, PREFIX/album/a.jpg for "
        "album/a.jpg of the current folder; the model fetches them, so they have to be the same files",
    )


def add_workers_argument(parser: ArgumentParser) -> None:
    """The option for the number of images in parallel: ``workers_from`` reads it."""
    parser.add_argument(
        "--workers",
        metavar="N",
        type=int,
        help=f"images in parallel (default: one per processor core, {WORKERS} with a model)",
    )


def complete_files(argument: Action) -> None:
    """Complete the value of an argument with the names of files."""
    vars(argument)["complete"] = shtab.FILE


def complete_folders(argument: Action) -> None:
    """Complete the value of an argument with the names of folders."""
    vars(argument)["complete"] = shtab.DIRECTORY
