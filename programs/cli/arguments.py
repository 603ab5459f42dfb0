"""The options of the commands; ``configs/options.py`` declares those that are also keys of the configuration.

This module has only declarations, so that --help, --version and shell completion load neither DSPy nor numpy.
"""

from dataclasses import replace
from pathlib import Path

from agenticiqa.configs.options import (
    AdapterKey,
    FusionKey,
    Group,
    ImageKeys,
    ModelKeys,
    Option,
    Options,
    RequestKeys,
    SentKeys,
    Writes,
    keys,
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

exit status: 0 the page was written, 1 it was not or some photos have no score, 2 wrong usage
"""

CONFIG = Option(
    "--config FILE",
    "read this configuration file (default: $AGENTICIQA_CONFIG; if not set, run offline)",
    with_shards=True,
)
MODEL: Options = (
    Option(
        "--backend B",
        "use this model for every stage: openai.gpt-4o, vllm.MODEL, ... or offline. Run `agenticiqa backends` for the "
        "list of providers",
        with_shards=True,
    ),
    Option("--api-base URL", "send the requests of --backend to this OpenAI-compatible server", with_shards=True),
    Option("--api-key-env NAME", "the environment variable with the key of that server", with_shards=True),
    Option(
        "--price IN,OUT",
        "the price of the model in USD per million tokens, such as 2.5,10, if it is not known",
        with_shards=True,
    ),
    CONFIG,
)
LIMITS: Options = (
    Option(
        "--max-calls N",
        "stop before more than N calls to a model (default: no limit)",
        int,
        at_least=0,
        with_shards=True,
    ),
    Option(
        "--max-usd M",
        "stop before the cost exceeds M US dollars (default: no limit)",
        float,
        at_least=0,
        with_shards=True,
    ),
)
OFFLINE = "Without a model, the program runs offline and sends nothing."
MODELS = Group(
    (*MODEL, *keys(AdapterKey), *keys(ModelKeys), *keys(RequestKeys), *keys(SentKeys), *LIMITS), "models", OFFLINE
)
MODELS_FUSED = replace(MODELS, options=(*MODELS.options, *keys(FusionKey)))
REFERENCE: Options = (
    Option("--resize-reference", "scale a reference of another size to the size of the image", bool, with_shards=True),
    *keys(ImageKeys),
)
WORKERS_OPTION = Option(
    "--workers N",
    f"process N images in parallel, and send at most N requests to a server at a time (default: one image per "
    f"processor core, {WORKERS} with a model, 1 with ollama, llamacpp and lmstudio)",
    int,
    at_least=1,
    with_shards=True,
)
WITHOUT_MODEL = replace(WORKERS_OPTION, help="process N images in parallel (default: one per processor core)")
DRY_RUN = Option("--dry-run", "print the expected calls, tokens and USD; send nothing", bool)
SUBMIT = (
    "submit the requests to a Batch API (half the price, answers within 24 hours). It works with openai, and with "
    "other servers that have the same API. To continue, also after Ctrl-C or a crash, "
)
BATCHED = Option("--batch", f"{SUBMIT}run the same command again. `agenticiqa batches` lists the batches", bool)
RESUMED = replace(BATCHED, help=f"{SUBMIT}add --resume to the same command. `agenticiqa batches` lists the batches")
RAW_CSV = Option(
    "--raw-csv",
    "write texts to CSV unchanged. By default, an apostrophe is put before a text that a spreadsheet could run as a "
    "formula (it begins with = + - or @), and control characters become blanks",
    bool,
    with_shards=True,
)


def table_files(html: Option | None = None, csv: str = "write the table as CSV (-: stdout)") -> Options:
    """Return the options for the files of a table, with other help for the page and for CSV where these show more."""
    page = Option("--html FILE", "write the table as an HTML page, which loads nothing from the network", Path)
    options = (
        html or replace(page, writes=Writes.PAGE),
        Option("--csv FILE", csv, Path, writes=Writes.FILE),
        RAW_CSV,
        Option("--markdown FILE", "write the table as Markdown (-: stdout)", Path, writes=Writes.FILE),
        Option(
            "--latex FILE", "write the table as LaTeX, for the package booktabs (-: stdout)", Path, writes=Writes.FILE
        ),
    )
    return tuple(replace(option, with_shards=True) for option in options)


CONTACT_SHEET = Option(
    "--html FILE",
    "write a contact sheet: a page with all images, sorted by score, which can be filtered by distortion and level. It "
    "loads nothing from the network",
    Path,
    writes=Writes.SHEET,
)
QUERY = Option(
    "--query Q",
    f'ask this question about each image (default: "{DEFAULT_QUERY}")',
    default=DEFAULT_QUERY,
    with_shards=True,
)
SAVE_MAPS = Option(
    "--save-maps DIR",
    "draw each image, a map of its damaged areas and its scores into a PNG in DIR. DIR gets the same subfolders as the "
    "images. An earlier PNG of the same image is replaced. In JSON results, map is the path of the PNG",
    Path,
    writes=Writes.FOLDER,
)
VERDICTS = Option(
    "--html FILE",
    "write a page with all photos, the refused ones first, each with its reasons. It loads nothing from the network",
    Path,
    writes=Writes.SHEET,
)
JSON_TABLE = Option("--json", "print JSON instead of a table", bool, writes=Writes.STDOUT)
TABLE: Options = (JSON_TABLE, *table_files())

ASSESS: Options = (
    Group(
        (
            Option(
                "IMAGE",
                "image files, folders, patterns such as 'album/*.jpg', or - for one image from stdin",
                nargs="*",
                dest="images",
                default=(),
                with_shards=True,
            ),
            Option(
                "--jobs FILE",
                "assess the images listed in FILE (-: stdin): JSON lines or CSV with image and, optionally, query, "
                "options and reference; or one path per line",
            ),
        ),
        one_of=True,
        required=True,
    ),
    Option(
        "--reference FILE",
        "compare with this pristine original, or with a folder of originals. In a folder, the original with the same "
        "relative path is used, otherwise the one with the same file name, if there is exactly one",
        with_shards=True,
    ),
    *REFERENCE,
    QUERY,
    Option(
        "--option TEXT",
        "add one option to choose from (repeatable, 2 to 26 times). The answer is then a letter: A is the first option",
        dest="options",
        several=True,
        with_shards=True,
    ),
    MODELS_FUSED,
    Group(
        (
            Option(
                "--json",
                "print a JSON object for one image, else a JSON list. A failed image has only the keys image and error",
                bool,
                writes=Writes.STDOUT,
            ),
            Option(
                "--jsonl FILE",
                "append one JSON line to FILE as each image finishes, and write FILE.summary.json. FILE gets no lines "
                "of failed images. With -, print all lines to stdout, including those of failed images",
                writes=Writes.RESULTS,
            ),
            Option(
                "--parquet DIR",
                "write one Parquet file per shard of images into DIR, a folder or an address such as s3://... IMAGE "
                "can then also be a glob, an s3:// or gs:// address, a .csv or .parquet table, a .tar shard or a "
                "folder saved with save_to_disk() of Hugging Face datasets. After an interruption, run the same "
                "command again to continue",
                writes=Writes.FOLDER,
                with_shards=True,
            ),
        ),
        one_of=True,
    ),
    Option(
        "--shard-images N",
        "put N images into each shard of --parquet (default: 256)",
        int,
        256,
        at_least=1,
        with_shards=True,
    ),
    Option(
        "--engine",
        "choose where --parquet runs (default: local). With ray, it runs on the Ray cluster at $RAY_ADDRESS (if not "
        "set, one is started here), and --workers is the number of worker processes",
        choices=("local", "ray"),
        default="local",
        with_shards=True,
    ),
    Option(
        "--in-flight N",
        "with --engine ray, send at most N requests to a server at a time, from all workers (default: no limit)",
        int,
        at_least=1,
        with_shards=True,
    ),
    Option(
        "--resume",
        "skip images that already have a result in the --jsonl FILE, for the same image content, question and settings",
        bool,
        with_shards=True,  # a run in shards always continues
    ),
    SAVE_MAPS,
    Group(
        (
            *table_files(CONTACT_SHEET, "write a table with one row per image (-: stdout)"),
            Option(
                "--worst N",
                "print the N images with the lowest scores",
                int,
                at_least=1,
                writes=Writes.STDOUT,
                with_shards=True,
            ),
            Option(
                "--fail-under SCORE",
                "exit with status 4 if an image scores below SCORE (1 to 5), and with 3 if an image has no score. "
                "Results are shown as usual",
                float,
                with_shards=True,
            ),
        ),
        "overview",
        "These options summarize all images. With one of them, except --fail-under, results of single images are "
        "printed only if you add --json or --jsonl -.",
    ),
    WORKERS_OPTION,
    DRY_RUN,
    RESUMED,
)
COMPARE_IMAGES: Options = (  # options of a command in eval, which also compares runs
    Group(
        (
            Option("--reference FILE", "compare all images with this pristine original"),
            *REFERENCE,
            SAVE_MAPS,
        ),
        "images",
        "These options apply to a comparison of image files.",
    ),
    MODELS,
    WORKERS_OPTION,
)
MEASURE: Options = (
    Option(
        "METRIC ... IMAGE",
        "one or more metric names, in upper or lower case (pyiqa:NAME for a metric of pyiqa), then image files, "
        "folders, patterns, or - for stdin",
        nargs="*",
        dest="words",
    ),
    Option("--reference FILE", "compare with this pristine original, or with a folder of originals"),
    *TABLE,
    WITHOUT_MODEL,
)
GATE: Options = (
    Option(
        "IMAGE",
        "image files, folders, patterns such as 'album/*.jpg', or - for one image from stdin; or results of assess "
        "(--jsonl, --parquet)",
        nargs="+",
        dest="images",
    ),
    Option("--policy FILE", "read the conditions from this YAML file (default: the shipped policy)"),
    *keys(AdapterKey),
    replace(JSON_TABLE, help="print one JSON object: the refusals per reason, and the result of each image"),
    Option(
        "--jsonl FILE", "write one JSON line per image; an existing FILE is replaced (-: stdout)", writes=Writes.FILE
    ),
    *table_files(VERDICTS, "write a table with one row per image (-: stdout)"),
    WITHOUT_MODEL,
)
RATE: Options = (
    Option("ALBUM", "a folder of photos, also in subfolders", dest="album"),
    Option(
        "--out FILE",
        "write the page; it shows the photos from their folder",
        Path,
        required=True,
        writes=Writes.SHEET,
    ),
    Option("--images N", "choose N photos at random from all ranges of the score (default: 60)", int, 60, at_least=1),
    Option("--pairs", "show N pairs of photos with similar scores, to choose the better one of each", bool),
    Option(
        "--reference DIR", "with --pairs, show only pairs with the same original in this folder: copies of one scene"
    ),
    Option("--seed N", "choose and order the photos by this number (default: 0)", int, 0),
    Option("--scores FILE", "use the scores in these results of assess instead of assessing the photos"),
    WITHOUT_MODEL,
)
BACKENDS: Options = (
    Group((*MODEL, *keys(RequestKeys)), "models", OFFLINE),
    Option(
        "--probe",
        "send each model two questions: a small one, to find out which features its server refuses, and the rating of "
        "an image, to find out whether its answer is valid and fits the context",
        bool,
    ),
    *TABLE,
)
BATCHES: Options = (
    Option("RESULTS", "the results file or folder of a run that used --batch", dest="run"),
    Group(
        (
            Option(
                "--collect",
                "fetch and store the answers of ended batches, without submitting more. The run does this itself when "
                "it continues",
                bool,
            ),
            Option(
                "--cancel N",
                "cancel the batches with these numbers (default: all). Requests that were already answered are "
                "charged, and their answers are kept",
                int,
                nargs="*",
            ),
        ),
        one_of=True,
    ),
    *TABLE,
)
TOOLS: Options = (*TABLE, CONFIG)
