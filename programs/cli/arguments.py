"""The options of the program's commands; ``configs/options.py`` declares those that are keys of the configuration, too.

This module has only declarations: running a command loads DSPy and numpy, which --help, --version and Tab skip.
"""

from pathlib import Path

from agenticiqa.configs.options import AdapterKey, Group, ImageKeys, ModelKeys, Option, Options, keys
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
BATCHES_EXAMPLES = """\
examples:
  agenticiqa assess album/ --config mine.yaml --batch --jsonl scores.jsonl            send; Ctrl-C leaves it under way
  agenticiqa batches scores.jsonl                                                     what is under way
  agenticiqa assess album/ --config mine.yaml --batch --jsonl scores.jsonl --resume   collect, and go on
  agenticiqa batches scores.jsonl --cancel                                            end it early
"""
MEASURE_EXAMPLES = """\
examples:
  agenticiqa measure ssim photo.jpg --reference original.png     one number
  agenticiqa measure ssim psnr haarpsi out/ --reference ref/     a table: folders are matched by relative path
  agenticiqa measure niqe "shots/*.jpg" --csv -                  CSV on stdout; --csv FILE writes it
  agenticiqa measure --list                                      every metric: kind, direction, range, source

Values are on the metric's own scale, of the 8-bit RGB pixels, upright and over white.
exit status: 0 all measured, 1 some failed (named on stderr), 2 usage, or nothing could be measured
"""
GATE_EXAMPLES = """\
examples:
  agenticiqa gate uploads/                          by the shipped policy (configs/gate.yaml)
  agenticiqa gate uploads/ --policy mine.yaml --json
  agenticiqa gate uploads/ --csv verdicts.csv --html sheet.html

  # mine.yaml: what is left out is not looked at
  min_short_side: 800
  min_effective_side: 1000     # of the longer side: an enlarged copy has more pixels than detail
  min_jpeg_quality: 60         # of its past, also of a PNG
  min_score: 3                 # this and the next two judge the photo as assess does, which takes longer
  distortions: {blur: severe, noise: moderate}
  refuse_kinds: [page, graphic]

reasons: undecodable, small, large, aspect, upscaled, compressed, score, kind, or the name of a distortion
exit status: 0 all accepted, 4 some refused, 1 some not found or skipped, 2 usage
"""

CONFIG = Option("--config FILE", "configuration file (default: $AGENTICIQA_CONFIG, else offline)")
MODEL: Options = (
    Option(
        "--backend B",
        "the model for every stage: openai.gpt-4o, vllm.MODEL, ... or offline; agenticiqa backends lists the providers",
    ),
    Option("--api-base URL", "with --backend: the address of an OpenAI-compatible server"),
    CONFIG,
)
LIMITS: Options = (
    Option("--max-calls N", "stop before more calls to a model than this", int, at_least=0),
    Option("--max-usd M", "stop before more is spent than this (needs price in --config)", float, at_least=0),
)
OFFLINE = "Without them the program is offline: nothing is sent."
MODELS = Group((*MODEL, *keys(AdapterKey), *keys(ModelKeys), *LIMITS), "models", OFFLINE)
REFERENCE: Options = (
    Option("--resize-reference", "scale a reference of another size to the image's", bool),
    *keys(ImageKeys),
)
WORKERS_OPTION = Option(
    "--workers N", f"images in parallel (default: one per processor core, {WORKERS} with a model)", int, at_least=1
)
DRY_RUN = Option("--dry-run", "estimate calls, tokens and (with price in --config) USD, and send nothing", bool)
BATCH: Options = (
    Option(
        "--batch",
        "send requests as batches, at half the price, answered within 24 hours (openai, also at other servers that "
        "have its batches; vllm: as files for vllm run-batch); after Ctrl-C or a crash the same command (assess: with "
        "--resume) goes on; see agenticiqa batches",
        bool,
    ),
    Option(
        "--image-urls PREFIX",
        "with --batch: requests carry addresses of images in place of their bytes, PREFIX/album/a.jpg for album/a.jpg "
        "of the current folder; the model fetches them, so they have to be the same files",
    ),
)
RAW_CSV = Option(
    "--raw-csv",
    "leave texts in CSV as they are; else one that begins with = + - @ gets an apostrophe before it, as a spreadsheet "
    "would run it as a formula (numbers stay numbers), and control characters become blanks",
    bool,
)
TABLES: Options = (
    Option(
        "--html FILE",
        "write a contact sheet: every image by score, filtered by distortion; loads nothing from elsewhere",
        Path,
    ),
    Option("--csv FILE", "write a table with a line for each image; - prints it", Path),
    RAW_CSV,
)
QUERY = Option("--query Q", f'the question (default: "{DEFAULT_QUERY}")', default=DEFAULT_QUERY)
SAVE_MAPS = Option(
    "--save-maps DIR",
    "draw each image that is judged, where it is bad, and its scores: PNGs in DIR, in folders named as those of the "
    "images; map in a result is the path of its PNG, which replaces an earlier one of the same image",
    Path,
)
JSON_TABLE = Option("--json", "print JSON instead of a table", bool)

ASSESS: Options = (
    Group(
        (
            Option("IMAGE", "image files, folders of them, or - for stdin", nargs="*", dest="images", default=()),
            Option(
                "--jobs FILE",
                "judge the rows of FILE: JSON lines or CSV with image and, if they have their own, query, options and "
                "reference, or a path on each line; - reads them from stdin",
            ),
        ),
        one_of=True,
        required=True,
    ),
    Option(
        "--reference FILE",
        "the pristine original, or a folder of them: that of the same path in it, else the only one of that name",
    ),
    *REFERENCE,
    QUERY,
    Option(
        "--option TEXT",
        "an answer to choose from, once for each of 2 to 26: the answer is then a letter, A for the first",
        dest="options",
        several=True,
    ),
    MODELS,
    Group(
        (
            Option(
                "--json",
                "print one JSON object; of a folder, rows or several images a list, where what failed has image and "
                "error",
                bool,
            ),
            Option(
                "--jsonl FILE",
                "append one JSON line for each image as it is finished, and write FILE.summary.json; - prints the "
                "lines, also of what failed",
            ),
            Option(
                "--parquet DIR",
                "write a Parquet file into DIR, a folder or an address such as s3://..., for each shard of the images; "
                "images may then also be globs, s3:// and gs:// addresses, .csv or .parquet tables, .tar shards and "
                "saved data sets. The same command continues what was interrupted",
            ),
        ),
        one_of=True,
    ),
    Option("--shard-images N", "with --parquet: images of a shard (default: 256)", int, 256, at_least=1),
    Option(
        "--engine",
        "with --parquet: ray judges on the Ray cluster at $RAY_ADDRESS, or on one that is started here; --workers is "
        "then the number of worker processes (default: one per processor)",
        choices=("local", "ray"),
        default="local",
    ),
    Option("--in-flight N", "with --engine ray: requests to a server at a time, of all workers", int, at_least=1),
    Option(
        "--resume",
        "with --jsonl FILE: leave out images that FILE has a result of, for the same files, question and settings",
        bool,
    ),
    Option(
        "--fuse",
        "auto, with --jsonl or --parquet: after 50 or more images that a model rated, find out from them how far it is "
        "to be trusted, and let the rows show the score of that; the default's stays beside it",
        choices=("default", "auto"),
        default="default",
    ),
    SAVE_MAPS,
    Group(
        (
            *TABLES,
            Option("--worst N", "print the N images of the lowest score", int, at_least=1),
            Option(
                "--fail-under SCORE",
                "exit with status 4 if an image scores below this, 1 to 5, and with 3 if one has no score (results are "
                "shown as usual)",
                float,
            ),
        ),
        "overview",
        "Of all images together; the results themselves are then only shown with --json or --jsonl.",
    ),
    WORKERS_OPTION,
    DRY_RUN,
    *BATCH,
)
COMPARE_IMAGES: Options = (  # of images; the command itself is in eval, as it compares runs, too
    Group(
        (
            Option("--reference FILE", "the pristine original of all of them"),
            *REFERENCE,
            Option("--json", "print one JSON object, the images in the order of rank", bool),
            Option("--html FILE", "write a page with the images and maps side by side", Path),
            SAVE_MAPS,
        ),
        "images",
        "Of a comparison of image files.",
    ),
    MODELS,
    WORKERS_OPTION,
)
MEASURE: Options = (
    Option(
        "METRIC ... IMAGE",
        "metrics in any case, or pyiqa:NAME, then image files, folders or - (stdin)",
        nargs="*",
        dest="words",
    ),
    Option("--reference FILE", "the pristine original, or a folder of originals"),
    Group(
        (
            Option("--csv FILE", "write CSV into FILE; - prints it"),
            Option("--json", "print a JSON list", bool),
        ),
        one_of=True,
    ),
    RAW_CSV,
    WORKERS_OPTION,
    Option("--list", "list the metrics: kind, direction, range, source", bool),
)
GATE: Options = (
    Option("IMAGE", "image files, folders, or - for stdin", nargs="+", dest="images"),
    Option("--policy FILE", "YAML with what a photo must have"),
    *keys(AdapterKey),
    Group(
        (
            Option("--json", "print one JSON object: counts by reason, and each image", bool),
            Option("--jsonl FILE", "write one JSON line for each image, which replaces an earlier file; - prints them"),
        ),
        one_of=True,
    ),
    *TABLES,
    WORKERS_OPTION,
)
BACKENDS: Options = (
    Group(MODEL, "models", OFFLINE),
    Option("--probe", "ask each model a small question, to find out what its server refuses", bool),
    JSON_TABLE,
)
BATCHES: Options = (
    Option("RESULTS", "the file or folder of results of a run with --batch", dest="run"),
    Group(
        (
            Option("--collect", "keep the answers of batches that have ended", bool),
            Option(
                "--cancel N",
                "cancel these batches, or all; what is answered already is kept, and paid",
                int,
                nargs="*",
            ),
        ),
        one_of=True,
    ),
    JSON_TABLE,
)
TOOLS: Options = (JSON_TABLE, CONFIG)
