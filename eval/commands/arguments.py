"""Declare the options and the help of the commands that evaluate and tune, as ``programs/cli/arguments.py`` does."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any

from annotated_types import Ge

from agenticiqa.configs.options import Arguments, FusionKey, Group, Keys, Option, Writes
from agenticiqa.eval.names import GROUPS, MOS_RANGE_HELP, SCORER_FORMS, Optimizer, Stage
from agenticiqa.programs.cli.arguments import (
    BATCHED,
    CSV,
    DRY_RUN,
    HTML,
    MODELS,
    OF_RUNS,
    QUERY,
    WITHOUT_MODEL,
    BatchedOptions,
    CompareImagesOptions,
    LoggedOptions,
    ModelOptions,
    RunOptions,
    TableOptions,
)
from agenticiqa.signatures.vocabulary import DEFAULT_QUERY

OUT_HELP = "file to write (default: %(default)s)"
DATA_HELP = (
    "a table (.csv, .tsv, .xlsx, .json, .jsonl, .parquet) with the columns image and mos, or a folder with labels.csv "
    "or metadata.csv. Also a folder saved with save_to_disk() of Hugging Face datasets, hub:OWNER/NAME@REVISION, or "
    "the NAME of a public data set (see `agenticiqa datasets`)"
)
SEVERAL_HELP = "Several tables with a column rater, one per person, are merged into MOS"
EVALUATE_EXAMPLES = """\
examples:
  agenticiqa evaluate labels.csv                                score your images offline and compare with their MOS
  agenticiqa evaluate labels.csv --config mine.yaml --dry-run   estimate the cost of this evaluation with a model
  agenticiqa evaluate labels.csv --scorer NIQE --out runs/niqe  evaluate a metric instead of the program
  agenticiqa evaluate labels.csv --scorer column:mine --scorer file:musiq.csv --scorer NIQE --out runs/all
      compare scores that you already have, and a metric, in one report with paired tests
  agenticiqa evaluate kadid10k --root /data --by distortion     evaluate on a public data set
  agenticiqa evaluate qbench --root /data --config mine.yaml    run a question benchmark

exit status: 0 all images have a score, 1 some images failed, 2 wrong usage, 3 some images have no score
"""
CALIBRATE_EXAMPLES = """\
adapter needs labeled images. fusion needs 50 images or more, without labels.
"""
CALIBRATE_ADAPTER_EXAMPLES = """\
examples:
  agenticiqa calibrate adapter mine/labels.csv --out mine.npz
      columns image and mos; optional columns: raters or mos_std (weight of a label), content (the scene of an image)
  agenticiqa calibrate adapter mine/pairs.csv --out mine.npz
      pairwise comparisons: columns better and worse, with two images in each row
  agenticiqa calibrate adapter album/labels-anna.csv album/labels-ben.csv --out mine.npz --mos-out album/labels.csv
      ratings of several people: columns image, mos and rater; repeat is 1 for a second rating by the same person
  agenticiqa assess album/ --adapter mine.npz
      use the adapter

Start with 50 labeled images; one person usually needs 100 to 150. No model is used. The adapter is tested on held-out
labels and saved only if it helps there, or with --save-anyway.

exit status: 0 the adapter was saved, 1 it was not saved, 2 wrong usage
"""
CALIBRATE_FUSION_EXAMPLES = """\
examples:
  agenticiqa calibrate fusion photos/ --backend openai.gpt-4o --out profile.yaml
      the model rates each photo; the cost is printed first (--dry-run prints only the cost, --max-usd limits it)
  agenticiqa calibrate fusion scores.jsonl --out profile.yaml
      use results of "assess --jsonl" or "evaluate", at no cost; MOS in them are used unless you add --no-labels
  agenticiqa calibrate fusion mine/labels.csv --config mine.yaml --out profile.yaml
      rate the labeled images and use their MOS; with saved results, name both files: scores.jsonl mine/labels.csv

The command estimates the error of a model, and the score on 1..5 of each of its quality levels. No labels are needed:
the estimate compares the model with several tools. With fewer than 50 images, a prior has a large weight.
Ratings are saved beside the profile (profile.rows.jsonl). After Ctrl-C or a limit, run the same command again to
continue. A profile is valid for one model, its scoring prompt and the tools. Use it with --fusion profile.yaml, or name
it in a configuration:

  fusion: profile.yaml

exit status: 0 the profile was saved, 1 some images were not rated, 2 wrong usage
"""
OPTIMIZE_EXAMPLES = """\
examples:
  agenticiqa optimize labels.csv --backend openai.gpt-4o-mini --reflection-backend openai.gpt-4o --out tuned/ --dry-run
      estimate the cost; without --dry-run, tune the scoring prompt with 400 assessments
  agenticiqa optimize labels.csv --backend openai.gpt-4o-mini --reflection-backend openai.gpt-4o --out tuned/ \\
      --max-usd 5
      spend at most 5 USD, including the final comparison
  agenticiqa optimize labels.csv --backend openai.gpt-4o-mini --reflection-backend openai.gpt-4o --out tuned/ \\
      --budget 800
      continue a search of 400 assessments; finished assessments are not repeated
  agenticiqa optimize more.csv --config mine.yaml --reflection-backend openai.gpt-4o --from tuned/ --out better/
      start from prompts that were tuned before, with the models of a configuration
  agenticiqa assess photo.jpg --backend openai.gpt-4o-mini --prompts tuned/
      use the tuned prompts

The folder contains prompts.json, fusion.yaml and report.html. fusion.yaml is a fusion profile for the saved prompts;
it changes scores even if the original prompts are kept. After Ctrl-C or an outage, run the same command again to
continue.

exit status: 0 the tuned prompts were saved, 1 they gave no clear improvement on held-out images or questions, so the
original prompts were saved, 2 wrong usage
"""
COMPARE_EXAMPLES = """\
examples:
  agenticiqa compare runs/mine runs/tuned                    ranking of two runs, differences, p values, power
  agenticiqa compare runs/* --markdown - > comparison.md     the same tables as Markdown
  agenticiqa compare runs/niqe runs/brisque                  runs on several data sets: a table each for SRCC, PLCC, ...
  agenticiqa compare a.jpg b.webp --reference original.png   rank images, with size in bytes and all metrics
  agenticiqa compare shot1.jpg shot2.jpg --html both.html    a page that shows the images and maps side by side
"""
REPORT_EXAMPLES = """\
examples:
  agenticiqa report runs/live --html report.html                 a page that opens from disk, without a server
  agenticiqa report runs/live runs/other --html both.html        several runs, each compared with the first
  agenticiqa report runs/live --latex table.tex --csv table.csv  the table of results in two formats
  agenticiqa report runs/all --plot scatter.pdf --plot-intervals srcc.pdf
      figures for a paper; runs/all may have the runs of several scorers
  agenticiqa report scores.jsonl --html sheet.html               the contact sheet of saved results of assess
"""
DATASETS_EXAMPLES = """\
examples:
  agenticiqa datasets                          list the data sets and the question benchmarks
  agenticiqa datasets kadid10k                 show where to get a data set and where to unpack it
  agenticiqa datasets kadid10k --root /data    check your copy: number of labels, missing files, and
                                               whether higher or lower scores are better

exit status: 0 the copy is complete, 1 labels or files are missing, 2 wrong usage
"""

MOS_RANGE = Option("--mos-range LOW HIGH", MOS_RANGE_HELP)
NAME = Option(
    "--name NAME", "name of a run in the tables (repeatable: once per run, in their order; default: its folder)"
)
OWN_DATA = Group("own data", "How to read your own table.")


@dataclass(frozen=True, kw_only=True, eq=False)
class LabelOptions(Arguments):
    """The options that say how labels are read."""

    root: Annotated[
        Path | None,
        Option(
            "--root DIR",
            "for a public data set, the folder into which you unpacked its archive. For your own table, the folder to "
            "which its image paths are relative (default: folder of the table)",
        ),
    ] = None
    split: Annotated[str | None, Option("--split NAME", "use only the rows of this split (column split)")] = None
    partial: Annotated[
        bool, Option("--partial", "accept an incomplete copy of a data set; rows with missing files are skipped")
    ] = False
    image_column: Annotated[
        str | None, Option("--image-column NAME", "column of the image paths (default: image, filename, ...)"), OWN_DATA
    ] = None
    reference_column: Annotated[
        str | None,
        Option("--reference-column NAME", "column of the references, or none (default: reference, ref_img, hq, ...)"),
        OWN_DATA,
    ] = None
    mos_column: Annotated[
        str | None, Option("--mos-column NAME", "column of the scores (default: mos, score, ...)"), OWN_DATA
    ] = None
    lower_is_better: Annotated[
        bool | None,
        Option(
            "--lower-is-better",
            "declare whether low scores mean good quality, as in most DMOS. Low scores are then mirrored. By default, "
            "higher is better; the command stops if a column named DMOS or the images contradict that",
            negatable=True,
        ),
        OWN_DATA,
    ] = None
    mos_range: Annotated[list[float] | None, MOS_RANGE, OWN_DATA] = None
    keep_raters: Annotated[
        bool,
        Option("--keep-raters", "also use ratings of people who agree neither with others nor themselves"),
        OWN_DATA,
    ] = False


@dataclass(frozen=True, kw_only=True, eq=False)
class ProgramOptions(ModelOptions):
    """The options of ``evaluate`` that a scorer does not use, apart from those of logging and of the cache."""

    query: Annotated[str, QUERY] = DEFAULT_QUERY
    keys: Annotated[Mapping[str, Any], Keys((*OF_RUNS, FusionKey), (MODELS,))] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True, eq=False)
class EvaluateOptions(LabelOptions, ProgramOptions, BatchedOptions):
    """The options of ``evaluate``."""

    tasks: Annotated[
        list[Path],
        Option(
            "TASK",
            f"labeled images: {DATA_HELP}. Or the name of a question benchmark. With several tasks, the mean of their "
            "results is also reported",
            nargs="+",
        ),
    ]
    limit: Annotated[
        int | None,
        Option(
            "--limit N",
            "use only the first N rows, for a quick trial. If RUN has a report on more rows, that report is kept and "
            "the new one is named report-first-N",
        ),
        Ge(1),
    ] = None
    scorer: Annotated[
        list[str] | None,
        Option(
            "--scorer S",
            f"evaluate this instead of the program: {SCORER_FORMS}. Repeat it to compare several scorers in one report",
        ),
    ] = None
    scorer_lower_is_better: Annotated[
        bool,
        Option(
            "--scorer-lower-is-better",
            "with --scorer module:function, column: or file:, lower values mean better quality. For a single column, "
            "write a minus before its name, such as column:-lpips",
        ),
    ] = False
    shorter_side: Annotated[
        int | None,
        Option("--shorter-side PIXELS", "with --scorer: first downscale larger images to this shorter side"),
        Ge(1),
    ] = None
    by: Annotated[
        str | None,
        Option(
            "--by", "also print the results for each value of this column (report.md has all columns)", choices=GROUPS
        ),
    ] = None
    splits: Annotated[
        str | None,
        Option(
            "--splits N|FILE",
            "also report the median SRCC and PLCC over the test sets of N random 80/20 splits, the usual protocol in "
            "papers. All images of one scene are in the same part. A CSV FILE "
            'defines the splits: a column image, and one column per split with "test" for test images',
        ),
    ] = None
    baselines: Annotated[
        bool, Option("--baselines", "also measure every embedded metric of overall quality (in RUN/baseline-NAME)")
    ] = False
    out: Annotated[
        Path | None,
        Option(
            "--out RUN",
            "folder of the results (default: runs/<data>-<backend>). Run the same command again to continue there. "
            "With several tasks or scorers, each has a subfolder",
            writes=Writes.FOLDER,
        ),
    ] = None
    circular: Annotated[
        bool,
        Option(
            "--circular",
            "for question benchmarks (see `agenticiqa datasets`): ask each question in all rotations of its options; "
            "it is correct only if all answers are correct",
        ),
    ] = False


@dataclass(frozen=True, kw_only=True, eq=False)
class CompareOptions(CompareImagesOptions):
    """The options of ``compare``."""

    runs: Annotated[
        list[Path],
        Option(
            "RUN|IMAGE",
            "two or more runs: folders that `evaluate --out` wrote, with one data set or several. Or two or more image "
            "files",
            nargs="+",
        ),
    ]
    name: Annotated[list[str] | None, NAME] = None
    html: Annotated[
        Path | None,
        replace(
            HTML,
            help="write a page with the tables and, for images, with the images and their damage maps side by side",
            writes=Writes.SHEET,
        ),
    ] = None
    csv: Annotated[
        Path | None,
        replace(CSV, help="write the first table as CSV to FILE, the others beside it; - prints only the first"),
    ] = None


@dataclass(frozen=True, kw_only=True, eq=False)
class ReportOptions(LoggedOptions, TableOptions):
    """The options of ``report``."""

    runs: Annotated[
        list[Path],
        Option("RUN", "folder that `evaluate --out` wrote; or results of assess (--jsonl, --parquet)", nargs="+"),
    ]
    name: Annotated[list[str] | None, NAME] = None
    mos_range: Annotated[list[float] | None, MOS_RANGE] = None
    html: Annotated[
        Path | None,
        replace(
            HTML,
            help="write a page with tables, charts and all images (copied to a folder beside it)",
            writes=Writes.SHEET,
        ),
    ] = None
    csv: Annotated[
        Path | None,
        replace(CSV, help="write the table as CSV, unrounded, with the ends of the intervals (-: stdout)"),
    ] = None
    plot: Annotated[
        Path | None,
        Option(
            "--plot FILE",
            "draw scores against MOS with the fitted curve for a paper (.pdf, .svg or .png): one column wide, or for "
            "several runs one page",
            writes=Writes.FILE,
        ),
    ] = None
    plot_intervals: Annotated[
        Path | None,
        Option(
            "--plot-intervals FILE",
            "draw the SRCC of each scorer, or of each of several runs, with its interval (.pdf, .svg or .png)",
            writes=Writes.FILE,
        ),
    ] = None


@dataclass(frozen=True, kw_only=True, eq=False)
class DatasetsOptions(LoggedOptions, TableOptions):
    """The options of ``datasets``."""

    name: Annotated[str | None, Option("NAME", "describe this data set (default: list all)", nargs="?")] = None
    root: Annotated[
        Path | None, Option("--root DIR", "check the copy in this folder, which holds the unpacked archive")
    ] = None


@dataclass(frozen=True, kw_only=True, eq=False)
class CalibrateOptions(LabelOptions):
    """The options of both commands ``calibrate``."""

    force: Annotated[bool, Option("--force", "replace existing files")] = False


@dataclass(frozen=True, kw_only=True, eq=False)
class CalibrateAdapterOptions(CalibrateOptions, LoggedOptions):
    """The options of ``calibrate adapter``."""

    labels: Annotated[
        list[Path],
        Option("LABELS", f"{DATA_HELP}. Or pairs (columns better, worse). {SEVERAL_HELP}", nargs="+"),
    ]
    out: Annotated[Path, Option("--out FILE", OUT_HELP, writes=Writes.FILE)] = Path("adapter.npz")
    mos_out: Annotated[
        Path | None,
        Option(
            "--mos-out FILE",
            "also write the MOS of the images as a table (.csv) that all commands read",
            writes=Writes.FILE,
        ),
    ] = None
    save_anyway: Annotated[
        bool, Option("--save-anyway", "save the adapter even if it does not clearly improve held-out scores")
    ] = False
    workers: Annotated[int | None, WITHOUT_MODEL, Ge(1)] = None


@dataclass(frozen=True, kw_only=True, eq=False)
class CalibrateFusionOptions(CalibrateOptions, BatchedOptions):
    """The options of ``calibrate fusion``."""

    data: Annotated[
        list[Path],
        Option(
            "PHOTOS|SCORES",
            "photos (files or folders) to rate with a model, or results of a finished run (.jsonl, or a folder of "
            "--parquet). You can add labels: a table with the columns image and mos, or a public data set",
            nargs="+",
        ),
    ]
    out: Annotated[Path, Option("--out FILE", OUT_HELP, writes=Writes.FILE)] = Path("fusion.yaml")
    no_labels: Annotated[bool, Option("--no-labels", "ignore the MOS in results of evaluate")] = False
    batch: Annotated[bool, BATCHED] = False


REFLECTION = Group("reflection model", "It writes the instructions.")


@dataclass(frozen=True, kw_only=True, eq=False)
class OptimizeOptions(LabelOptions, RunOptions):
    """The options of ``optimize``."""

    labels: Annotated[Path, Option("DATA", f"labeled images: {DATA_HELP}. Or the name of a question benchmark")]
    out: Annotated[
        Path,
        Option("--out DIR", "folder for the prompts, the fusion profile and the report", writes=Writes.FOLDER),
    ]
    stage: Annotated[
        Stage,
        Option(
            "--stage",
            "stage to tune (default: %(default)s). With scoring or all, DATA needs MOS; with answering, it "
            "must be a question benchmark; with detection, it needs a column distortion",
        ),
    ] = "scoring"
    budget: Annotated[
        int, Option("--budget N", "largest number of assessments in the search (default: %(default)s)"), Ge(1)
    ] = 400
    starts: Annotated[
        int,
        Option("--starts N", "write N proposals first, and continue from the best one (default: %(default)s)"),
        Ge(1),
    ] = 3
    warm: Annotated[
        str | None,
        Option("--from FILE", "start from these tuned prompts: the folder that optimize wrote, or a file"),
    ] = None
    optimizer: Annotated[
        Optimizer,
        Option(
            "--optimizer",
            "reflect (default): a model rewrites the instructions from the images with the largest errors, and a "
            "second measurement confirms an improvement. gepa: DSPy's GEPA",
        ),
    ] = "reflect"
    held_out: Annotated[
        float,
        Option(
            "--held-out SHARE",
            "fraction of the scenes held out to compare old and new prompts (default: %(default)s)",
        ),
    ] = 0.4
    seed: Annotated[int, Option("--seed N", "random seed of the split and of the search (default: %(default)s)")] = 0
    log_dir: Annotated[
        Path | None,
        Option(
            "--log-dir DIR",
            "folder of finished assessments; a search continues from those there (default: OUT/search)",
            writes=Writes.FOLDER,
        ),
    ] = None
    dry_run: Annotated[bool, DRY_RUN] = False
    reflection_backend: Annotated[
        str | None, Option("--reflection-backend R", "the model, such as openai.gpt-4o"), REFLECTION
    ] = None
    reflection_api_base: Annotated[
        str | None,
        Option("--reflection-api-base URL", "its OpenAI-compatible server (not needed for a known provider)"),
        REFLECTION,
    ] = None
    reflection_key_env: Annotated[
        str | None,
        Option("--reflection-key-env NAME", "environment variable with the key of that server"),
        REFLECTION,
    ] = None
    reflection_price: Annotated[
        str | None,
        Option("--reflection-price IN,OUT", "its price in USD per million tokens, such as 2.5,10, if it is not known"),
        REFLECTION,
    ] = None
