"""The options of the commands; ``configs/options.py`` declares those that are also keys of the configuration.

This module has only declarations, so that --help, --version and shell completion load neither DSPy nor numpy.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any, Literal

from annotated_types import Ge

from agenticiqa.configs.options import (
    AdapterKey,
    Arguments,
    FusionKey,
    Group,
    ImageKeys,
    Keys,
    LimitKeys,
    ModelKeys,
    Option,
    RequestKeys,
    SentKeys,
    Writes,
)
from agenticiqa.programs.backends.cores import WORKERS
from agenticiqa.signatures.vocabulary import DEFAULT_QUERY

ASSESS_EXAMPLES = """\
examples:
  agenticiqa assess photo.jpg                                  score a photo, 1 (bad) to 5 (excellent)
  agenticiqa assess photo.jpg --reference original.png         compare it with its pristine original
  agenticiqa assess photo.jpg --query "Is the sky noisy?"      ask a question about its quality
  agenticiqa assess photo.jpg --query "Main flaw? A. Blur B. Noise"
  agenticiqa assess --jobs questions.jsonl --jsonl answers.jsonl --resume
  agenticiqa assess album/                                     rank a folder, worst first (-v: each image in full)
  agenticiqa assess album/ --jsonl scores.jsonl --resume       write each result to a file; continue an earlier run
  agenticiqa assess photo.jpg --save-maps maps/                draw a map of the damaged areas: maps/photo.png
  agenticiqa assess album/ --html sheet.html --worst 10        write a contact sheet, list the ten worst images
  agenticiqa assess exports/ --fail-under 3                    check in a script: status 4 if an image is worse
  agenticiqa assess photo.jpg --backend openai.gpt-4o          also ask a vision-language model
  agenticiqa assess album/ --config mine.yaml --dry-run        estimate the cost, send nothing
  agenticiqa assess archive/ --parquet scores/                 write a Parquet file per 256 images; rerun to continue
  curl -s https://example.org/a.jpg | agenticiqa assess -      read one image from stdin

exit status:
  0    all images were assessed
  1    some images failed; stderr names them
  2    wrong usage, or no image could be assessed
  3    no image failed, but for some the model gave no usable answer (--resume assesses them again)
  4    all images were assessed, but one scores below --fail-under
  130  interrupted by Ctrl-C
"""
BATCHES_EXAMPLES = """\
examples:
  agenticiqa assess album/ --config mine.yaml --batch --jsonl scores.jsonl            submit (Ctrl-C stops no batches)
  agenticiqa batches scores.jsonl                                                     list the batches and their states
  agenticiqa assess album/ --config mine.yaml --batch --jsonl scores.jsonl --resume   collect and continue
  agenticiqa batches scores.jsonl --cancel                                            cancel all unfinished batches
"""
MEASURE_EXAMPLES = """\
examples:
  agenticiqa measure ssim photo.jpg --reference original.png     print one number
  agenticiqa measure ssim psnr haarpsi out/ --reference ref/     print a table; files are matched by relative path
  agenticiqa measure niqe "shots/*.jpg" --csv -                  print CSV (--csv FILE writes it)
  agenticiqa tools                                               list the metrics with kind, direction and range

Each value is on the metric's own scale. It is computed from 8-bit RGB pixels, after the image is turned upright (Exif)
and transparent areas are filled with white.

exit status:
  0  all images were measured
  1  some images failed; stderr names them
  2  wrong usage, or no image could be measured
"""
GATE_EXAMPLES = """\
examples:
  agenticiqa gate uploads/                          apply the shipped policy (configs/gate.yaml)
  agenticiqa gate uploads/ --policy mine.yaml --json
  agenticiqa gate uploads/ --csv verdicts.csv --html sheet.html

an example of a policy, mine.yaml (conditions that it does not name are not checked):
  min_short_side: 800          # pixels
  min_effective_side: 1000     # pixels of the longer side, estimated from the detail: finds enlarged photos
  min_jpeg_quality: 60         # quality 1 to 100 of a JPEG, by its header
  min_score: 3                 # this and the next two need a full assessment, which takes longer
  distortions: {blur: severe, noise: moderate}    # refuse this severity and worse
  refuse_kinds: [page, graphic]

reasons for a refusal: undecodable, small, large, aspect, upscaled, compressed, score, kind, or a distortion's name

exit status:
  0  all photos were accepted
  1  some photos were not found or were skipped
  2  wrong usage
  4  some photos were refused
"""
RATE_EXAMPLES = """\
examples:
  agenticiqa rate album/ --out rate.html                          score the album, write a page with 60 of its photos
  agenticiqa rate album/ --out rate.html --scores scores.jsonl    use results of "assess album/ --jsonl scores.jsonl"
  agenticiqa rate album/ --out rate.html --pairs                  choose the better one of two photos, 60 times
  agenticiqa calibrate adapter album/labels.csv --out mine.npz    adapt the offline score to your ratings

exit status: 0 the page was written, 1 it was not, 2 wrong usage
"""
MCP_EXAMPLES = """\
examples:
  agenticiqa mcp --root ~/photos                            let an assistant assess the photos in this folder
  agenticiqa mcp --root ~/photos --root ~/scans             also those in another one
  agenticiqa mcp --root ~/photos --backend openai.gpt-4o    send them to a vision-language model

An MCP client starts this command and talks to it over stdin and stdout; docs/mcp.md shows its settings. Install the SDK
of the protocol with: pip install 'agenticiqa[mcp]'

exit status: 0 the client closed stdin, 2 wrong usage
"""


LOGGING, VOLUME = Group("logging"), Group(one_of=True)
QUIET = Option("-q --quiet", "print only results and errors, without progress and notes", with_shards=True)


@dataclass(frozen=True, kw_only=True, eq=False)
class LightOptions(Arguments):
    """The options of a command that asks no model, and starts without DSPy."""

    quiet: Annotated[bool, QUIET, LOGGING] = False


@dataclass(frozen=True, kw_only=True, eq=False)
class LoggedOptions(Arguments):
    """The options of any other command."""

    quiet: Annotated[bool, QUIET, LOGGING, VOLUME] = False
    verbose: Annotated[
        int,
        Option(
            "-v --verbose",
            "log each step to stderr; -vv also logs prompts and replies",
            counted=True,
            with_shards=True,
        ),
        LOGGING,
        VOLUME,
    ] = 0
    log: Annotated[
        str | None,
        Option(
            "--log FILE",
            "append every step, prompt and reply to FILE as JSON lines",
            writes=Writes.FILE,
            with_shards=True,
        ),
        LOGGING,
    ] = None


JSON = Option("--json", "print JSON instead of a table", writes=Writes.STDOUT)
HTML = Option(
    "--html FILE",
    "write the table as an HTML page, which loads nothing from the network",
    writes=Writes.PAGE,
    with_shards=True,
)
CONTACT_SHEET = replace(
    HTML,
    help="write a contact sheet: a page with all images, sorted by score, which can be filtered by distortion and "
    "level. It loads nothing from the network",
    writes=Writes.SHEET,
)
CSV = Option("--csv FILE", "write the table as CSV (-: stdout)", writes=Writes.FILE, with_shards=True)
CSV_OF_IMAGES = replace(CSV, help="write a table with one row per image (-: stdout)")
RAW_CSV = Option(
    "--raw-csv",
    "write texts to CSV unchanged. By default, an apostrophe is put before a text that a spreadsheet could run as a "
    "formula (it begins with = + - or @), and control characters become blanks",
    with_shards=True,
)
MARKDOWN = Option("--markdown FILE", "write the table as Markdown (-: stdout)", writes=Writes.FILE, with_shards=True)
LATEX = Option(
    "--latex FILE",
    "write the table as LaTeX, for the package booktabs (-: stdout)",
    writes=Writes.FILE,
    with_shards=True,
)


@dataclass(frozen=True, kw_only=True, eq=False)
class TableOptions(Arguments):
    """The forms in which a command writes its table."""

    json: Annotated[bool, JSON] = False
    html: Annotated[Path | None, HTML] = None
    csv: Annotated[Path | None, CSV] = None
    raw_csv: Annotated[bool, RAW_CSV] = False
    markdown: Annotated[Path | None, MARKDOWN] = None
    latex: Annotated[Path | None, LATEX] = None


CONFIG = Option(
    "--config FILE",
    "read this configuration file (default: $AGENTICIQA_CONFIG; if not set, run offline)",
    with_shards=True,
)
MODELS = Group("models", "Without a model, the program runs offline and sends nothing.")
OF_MODELS = (AdapterKey, ModelKeys, RequestKeys, SentKeys)
OF_RUNS = (LimitKeys, *OF_MODELS)


@dataclass(frozen=True, kw_only=True, eq=False)
class ModelOptions(LoggedOptions):
    """The options that name a model."""

    backend: Annotated[
        str | None,
        Option(
            "--backend B",
            "use this model for every stage: openai.gpt-4o, vllm.MODEL, ... or offline. Run `agenticiqa backends` for "
            "the list of providers",
            with_shards=True,
        ),
        MODELS,
    ] = None
    api_base: Annotated[
        str | None,
        Option("--api-base URL", "send the requests of --backend to this OpenAI-compatible server", with_shards=True),
        MODELS,
    ] = None
    api_key_env: Annotated[
        str | None,
        Option("--api-key-env NAME", "the environment variable with the key of that server", with_shards=True),
        MODELS,
    ] = None
    price: Annotated[
        str | None,
        Option(
            "--price IN,OUT",
            "the price of the model in USD per million tokens, such as 2.5,10, if it is not known",
            with_shards=True,
        ),
        MODELS,
    ] = None
    config: Annotated[str | None, CONFIG, MODELS] = None
    keys: Annotated[Mapping[str, Any], Keys(OF_MODELS, (MODELS,))] = field(default_factory=dict)


WORKERS_OPTION = Option(
    "--workers N",
    f"process N images in parallel, and send at most N requests to a server at a time (default: one image per "
    f"processor core, {WORKERS} with a model, 1 with ollama, llamacpp and lmstudio)",
    with_shards=True,
)
WITHOUT_MODEL = replace(WORKERS_OPTION, help="process N images in parallel (default: one per processor core)")


@dataclass(frozen=True, kw_only=True, eq=False)
class RunOptions(ModelOptions):
    """The options of a command that assesses images."""

    keys: Annotated[Mapping[str, Any], Keys(OF_RUNS, (MODELS,))] = field(default_factory=dict)
    workers: Annotated[int | None, WORKERS_OPTION, Ge(1)] = None


SUBMIT = (
    "submit the requests to a Batch API (half the price, answers within 24 hours). It works with openai, and with "
    "other servers that have the same API. To continue, also after Ctrl-C or a crash, "
)
DRY_RUN = Option("--dry-run", "print the expected calls, tokens and USD; send nothing", with_shards=True)
BATCHED = Option("--batch", f"{SUBMIT}run the same command again. `agenticiqa batches` lists the batches")
RESUMED = replace(BATCHED, help=f"{SUBMIT}add --resume to the same command. `agenticiqa batches` lists the batches")


@dataclass(frozen=True, kw_only=True, eq=False)
class BatchedOptions(RunOptions):
    """The options of a run whose requests can be sent later."""

    dry_run: Annotated[bool, DRY_RUN] = False
    batch: Annotated[bool, BATCHED] = False


IMAGE_COLUMN = Option(
    "--image-column NAME",
    "the column of the images in tables: Parquet, data sets or CSV (default: image, img, jpg, path, ...)",
    with_shards=True,
)
SYSTEM_FOLDERS = Option(
    "--system-folders",
    "also use images in system folders, which are left out otherwise: trash, thumbnails and previews, such as @eaDir, "
    "#recycle, __MACOSX and *.lrdata",
    with_shards=True,
)
QUERY = Option("--query Q", f'ask this question about each image (default: "{DEFAULT_QUERY}")', with_shards=True)
REFERENCE = "with this pristine original, or with a folder of originals"
RESIZED = Option("--resize-reference", "scale a reference of another size to the size of the image", with_shards=True)
SAVE_MAPS = Option(
    "--save-maps DIR",
    "draw each image, a map of its damaged areas and its scores into a PNG in DIR. DIR gets the same subfolders as the "
    "images. An earlier PNG of the same image is replaced. In JSON results, map is the path of the PNG. An image takes "
    "about four times the processor time",
    writes=Writes.FOLDER,
)
SHOWN, INPUTS = Group(one_of=True), Group(one_of=True, required=True)
OVERVIEW = Group(
    "overview",
    "These options summarize all images. With one of them, except --fail-under, results of single images are printed "
    "only if you add --json or --jsonl -.",
)


@dataclass(frozen=True, kw_only=True, eq=False)
class AssessOptions(BatchedOptions, TableOptions):
    """The options of ``assess``."""

    images: Annotated[
        list[str],
        Option(
            "IMAGE",
            "image files, folders, patterns such as 'album/*.jpg', or - for one image from stdin; data sets: .tar and "
            ".parquet files, folders of them, folders of save_to_disk(), .csv or .jsonl tables of paths, and addresses "
            "such as s3://... or hf://...",
            nargs="*",
            with_shards=True,
        ),
        INPUTS,
    ] = field(default_factory=list)
    image_column: Annotated[str | None, IMAGE_COLUMN] = None
    system_folders: Annotated[bool, SYSTEM_FOLDERS] = False
    jobs: Annotated[
        str | None,
        Option(
            "--jobs FILE",
            "assess the images listed in FILE (-: stdin): JSON lines or CSV with image and, optionally, query, "
            "options and reference; or one path per line. With --parquet, FILE is a .csv or .jsonl",
            with_shards=True,
        ),
        INPUTS,
    ] = None
    reference: Annotated[
        str | None,
        Option(
            "--reference FILE",
            "compare with this pristine original, or with a folder of originals. In a folder, the original with the "
            "same relative path is used, otherwise the one with the same file name, if there is exactly one",
            with_shards=True,
        ),
    ] = None
    resize_reference: Annotated[bool, RESIZED, Keys((ImageKeys,))] = False
    keys: Annotated[Mapping[str, Any], Keys((*OF_RUNS, FusionKey), (MODELS,))] = field(default_factory=dict)
    query: Annotated[str, QUERY] = DEFAULT_QUERY
    options: Annotated[
        list[str] | None,
        Option(
            "--option TEXT",
            "add one option to choose from (repeatable, 2 to 26 times). The answer is then a letter: A is the first "
            "option",
            with_shards=True,
        ),
    ] = None
    json: Annotated[
        bool,
        replace(
            JSON,
            help="print a JSON object for one image, else a JSON list. A failed image has only the keys image and "
            "error",
        ),
        SHOWN,
    ] = False
    jsonl: Annotated[
        str | None,
        Option(
            "--jsonl FILE",
            "append one JSON line to FILE as each image finishes, and write FILE.summary.json. FILE gets no lines "
            "of failed images. With -, print all lines to stdout, including those of failed images",
            writes=Writes.RESULTS,
        ),
        SHOWN,
    ] = None
    parquet: Annotated[
        str | None,
        Option(
            "--parquet DIR",
            "write one Parquet file per shard of images into DIR, a folder or an address such as s3://..., for "
            "collections that take hours. After an interruption, run the same command again to continue",
            writes=Writes.FOLDER,
            with_shards=True,
        ),
        SHOWN,
    ] = None
    shard_images: Annotated[
        int,
        Option(
            "--shard-images N",
            "put N images into each shard of --parquet (default: 256)",
            needs="--parquet DIR",
            with_shards=True,
        ),
        Ge(1),
    ] = 256
    engine: Annotated[
        Literal["local", "ray"],
        Option(
            "--engine",
            "choose where --parquet runs (default: local). With ray, it runs on the Ray cluster at $RAY_ADDRESS (if "
            "not set, one is started here), and --workers is the number of worker processes",
            needs="--parquet DIR",
            with_shards=True,
        ),
    ] = "local"
    in_flight: Annotated[
        int | None,
        Option(
            "--in-flight N",
            "with --engine ray, send at most N requests to a server at a time, from all workers (default: no limit)",
            needs="--engine ray",
            with_shards=True,
        ),
        Ge(1),
    ] = None
    resume: Annotated[
        bool,
        Option(
            "--resume",
            "skip images that already have a result in the --jsonl FILE, for the same image content, question and "
            "settings. --parquet always continues; with --resume, it also assesses images again that failed or have "
            "no score",
            with_shards=True,
        ),
    ] = False
    keep_going: Annotated[
        bool,
        Option(
            "--keep-going",
            "do not stop after several images in a row without any usable answer of the model",
            with_shards=True,
        ),
    ] = False
    limit: Annotated[
        int | None,
        Option(
            "--limit N",
            "assess only the first N images, for a quick trial. Without it, the same command then assesses the others "
            "(add --resume with --jsonl)",
            with_shards=True,
        ),
        Ge(1),
    ] = None
    batch: Annotated[bool, RESUMED] = False
    save_maps: Annotated[Path | None, SAVE_MAPS] = None
    html: Annotated[Path | None, CONTACT_SHEET, OVERVIEW] = None
    csv: Annotated[Path | None, CSV_OF_IMAGES, OVERVIEW] = None
    raw_csv: Annotated[bool, RAW_CSV, OVERVIEW] = False
    markdown: Annotated[Path | None, MARKDOWN, OVERVIEW] = None
    latex: Annotated[Path | None, LATEX, OVERVIEW] = None
    worst: Annotated[
        int | None,
        Option("--worst N", "print the N images with the lowest scores", writes=Writes.STDOUT, with_shards=True),
        Ge(1),
        OVERVIEW,
    ] = None
    fail_under: Annotated[
        float | None,
        Option(
            "--fail-under SCORE",
            "exit with status 4 if an image scores below SCORE (1 to 5), and with 3 if an image has no score. "
            "Results are shown as usual",
            with_shards=True,
        ),
        OVERVIEW,
    ] = None


IMAGES = Group("images", "These options apply to a comparison of image files.")


@dataclass(frozen=True, kw_only=True, eq=False)
class ImageOptions(RunOptions):
    """The options of ``compare`` for images, a command of ``eval``, which also compares runs."""

    reference: Annotated[
        str | None, Option("--reference FILE", "compare all images with this pristine original"), IMAGES
    ] = None
    resize_reference: Annotated[bool, RESIZED, IMAGES, Keys((ImageKeys,), (IMAGES,))] = False
    image_column: Annotated[str | None, IMAGE_COLUMN, IMAGES] = None
    system_folders: Annotated[bool, SYSTEM_FOLDERS, IMAGES] = False
    save_maps: Annotated[Path | None, SAVE_MAPS, IMAGES] = None


@dataclass(frozen=True, kw_only=True, eq=False)
class CompareImagesOptions(ImageOptions, TableOptions):
    """The options of ``compare`` that a comparison of images uses."""


@dataclass(frozen=True, kw_only=True, eq=False)
class MeasureOptions(LightOptions, TableOptions):
    """The options of ``measure``."""

    words: Annotated[
        list[str],
        Option(
            "METRIC ... IMAGE",
            "one or more metric names, in upper or lower case (pyiqa:NAME for a metric of pyiqa), then image files, "
            "folders, patterns, data sets as for assess, or - for stdin",
            nargs="*",
        ),
    ]
    image_column: Annotated[str | None, IMAGE_COLUMN] = None
    system_folders: Annotated[bool, SYSTEM_FOLDERS] = False
    reference: Annotated[str | None, Option("--reference FILE", f"compare {REFERENCE}")] = None
    workers: Annotated[int | None, WITHOUT_MODEL, Ge(1)] = None


@dataclass(frozen=True, kw_only=True, eq=False)
class GateOptions(LightOptions, TableOptions):
    """The options of ``gate``."""

    images: Annotated[
        list[str],
        Option(
            "IMAGE",
            "image files, folders, patterns such as 'album/*.jpg', data sets as for assess, or - for one image from "
            "stdin; or results of assess (--jsonl, --parquet)",
            nargs="+",
        ),
    ]
    image_column: Annotated[str | None, IMAGE_COLUMN] = None
    system_folders: Annotated[bool, SYSTEM_FOLDERS] = False
    policy: Annotated[
        str | None,
        Option("--policy FILE", "read the conditions from this YAML file (-: stdin; default: the shipped policy)"),
    ] = None
    keys: Annotated[Mapping[str, Any], Keys((AdapterKey,))] = field(default_factory=dict)
    json: Annotated[
        bool,
        replace(JSON, help="print one JSON object: the refusals per reason, and the result of each image"),
    ] = False
    jsonl: Annotated[
        str | None,
        Option(
            "--jsonl FILE",
            "write one JSON line per image; an existing FILE is replaced (-: stdout)",
            writes=Writes.FILE,
        ),
    ] = None
    html: Annotated[
        Path | None,
        replace(
            HTML,
            help="write a page with all photos, the refused ones first, each with its reasons. It loads nothing from "
            "the network",
            writes=Writes.SHEET,
        ),
    ] = None
    csv: Annotated[Path | None, CSV_OF_IMAGES] = None
    workers: Annotated[int | None, WITHOUT_MODEL, Ge(1)] = None


@dataclass(frozen=True, kw_only=True, eq=False)
class RateOptions(LightOptions):
    """The options of ``rate``."""

    album: Annotated[str, Option("ALBUM", "a folder of photos, also in subfolders")]
    system_folders: Annotated[bool, SYSTEM_FOLDERS] = False
    out: Annotated[
        Path, Option("--out FILE", "write the page; it shows the photos from their folder", writes=Writes.SHEET)
    ]
    images: Annotated[
        int, Option("--images N", "choose N photos at random from all ranges of the score (default: 60)"), Ge(1)
    ] = 60
    pairs: Annotated[
        bool, Option("--pairs", "show N pairs of photos with similar scores, to choose the better one of each")
    ] = False
    reference: Annotated[
        str | None,
        Option(
            "--reference DIR",
            "with --pairs, show only pairs with the same original in this folder: copies of one scene",
        ),
    ] = None
    seed: Annotated[int, Option("--seed N", "choose and order the photos by this number (default: 0)")] = 0
    scores: Annotated[
        str | None,
        Option("--scores FILE", "use the scores in these results of assess instead of assessing the photos"),
    ] = None
    workers: Annotated[int | None, WITHOUT_MODEL, Ge(1)] = None


@dataclass(frozen=True, kw_only=True, eq=False)
class McpOptions(RunOptions):
    """The options of ``mcp``."""

    root: Annotated[
        list[str],
        Option(
            "--root DIR",
            "let clients name the images in this folder and its subfolders (repeatable). Relative paths begin at the "
            "first one",
        ),
    ]
    max_images: Annotated[
        int, Option("--max-images N", "refuse a call about more than N images (default: 200)"), Ge(1)
    ] = 200


@dataclass(frozen=True, kw_only=True, eq=False)
class BackendsOptions(ModelOptions, TableOptions):
    """The options of ``backends``."""

    keys: Annotated[Mapping[str, Any], Keys((RequestKeys,), (MODELS,))] = field(default_factory=dict)
    probe: Annotated[
        bool,
        Option(
            "--probe",
            "send each model two questions: a small one, to find out which features its server refuses, and the rating "
            "of an image, to find out whether its answer is valid and fits the context",
        ),
    ] = False


WHAT = Group(one_of=True)


@dataclass(frozen=True, kw_only=True, eq=False)
class BatchesOptions(LoggedOptions, TableOptions):
    """The options of ``batches``."""

    run: Annotated[str, Option("RESULTS", "the results file or folder of a run that used --batch")]
    collect: Annotated[
        bool,
        Option(
            "--collect",
            "fetch and store the answers of ended batches, without submitting more. The run does this itself when it "
            "continues",
        ),
        WHAT,
    ] = False
    cancel: Annotated[
        list[int] | None,
        Option(
            "--cancel N",
            "cancel the batches with these numbers (default: all). Requests that were already answered are charged, "
            "and their answers are kept",
            nargs="*",
        ),
        WHAT,
    ] = None


@dataclass(frozen=True, kw_only=True, eq=False)
class ToolsOptions(LoggedOptions, TableOptions):
    """The options of ``tools``."""

    config: Annotated[str | None, CONFIG] = None
