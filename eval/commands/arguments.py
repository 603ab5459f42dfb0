"""The arguments of the commands that measure and tune; only the parsers, as ``agenticiqa.programs.cli.arguments``."""

from argparse import ArgumentParser, BooleanOptionalAction, RawDescriptionHelpFormatter
from pathlib import Path

from agenticiqa.eval.names import GROUPS, MOS_RANGE_HELP, OPTIMIZERS, PARTS, SCORER_FORMS, TABLE_FORMS, TUNED_STAGES
from agenticiqa.programs.backends.cores import WORKERS
from agenticiqa.programs.cli.arguments import (
    add_backend_arguments,
    add_batch_argument,
    add_dry_run_argument,
    add_image_options,
    add_raw_csv,
    add_workers_argument,
    complete_files,
    complete_folders,
)
from agenticiqa.signatures.vocabulary import DEFAULT_QUERY

FUSION_OUT, CURVES_OUT = Path("fusion.yaml"), Path("calibration.yaml")
DATA_HELP = (
    "a table (.csv, .tsv, .jsonl, .parquet) with columns image and mos, a folder with labels.csv or metadata.csv, a "
    "folder of save_to_disk, hub:OWNER/NAME@REVISION, or the NAME of a data set, see `agenticiqa datasets`"
)
CALIBRATE_EXAMPLES = """\
Three things can be fitted. With --adapt it is an adapter of the learned scorer. With --backend or --config, or to the
rows of a finished run (.jsonl), it is the fusion; else it is the tools' curves.

AN ADAPTER: the offline score corrected by your own labels; 50 to 200 images are enough, and no model is asked.

  agenticiqa calibrate mine/labels.csv --adapt --out mine.npz
      columns image and mos; optional: raters or mos_std, which weight the labels, and content, the scene of an image
  agenticiqa calibrate mine/pairs.csv --adapt --out mine.npz
      columns better and worse: two images in each row
  agenticiqa assess album/ --adapter mine.npz

It is tested on held-out labels, and saved only if it helps there; else the exit status is 1.

THE FUSION: how far a model is to be trusted beside the tools, and where its levels lie. No labels are needed: it is
found out from how the model, the tools and further tools agree over the images (50 and more; with fewer a prior
decides).

  agenticiqa calibrate --backend openai.gpt-4o photos/ --out profile.yaml
      the model rates each photo, after the cost was told; --dry-run only tells it; --max-usd, --max-calls stop before
  agenticiqa calibrate scores.jsonl --out profile.yaml
      from the rows of "assess --jsonl" or "evaluate", at no cost
  agenticiqa calibrate --config mine.yaml mine/labels.csv --out profile.yaml
      with opinion scores; also "scores.jsonl mine/labels.csv"; the rows of "evaluate" have them (--no-labels: without)

Ratings are kept beside the profile, in a file that ends in .rows.jsonl: after Ctrl-C or a limit the same command
continues. A profile is of one model, its prompts and the tools. Name it in a configuration:

  fusion: profile.yaml

THE TOOLS' CURVES: every tool measures on its own scale; a curve per tool maps it to 1..5. The shipped curves were
fitted on public sets. Fit them to opinion scores of your own images:

  agenticiqa calibrate mine/labels.csv --out mine.yaml
      all tools that apply: full-reference ones where references are given, else no-reference ones
  agenticiqa calibrate mine/labels.csv --tool SSIM GMSD --mos-range 1 10 --out mine.yaml --force
      two tools, on scores from 1 to 10, replacing an earlier mine.yaml
  agenticiqa calibrate mine/labels.csv --split train --name "my set" --base other.yaml
      some of the rows; the name of the data in the profile; where the curves of all other tools come from
  agenticiqa calibrate photos/ --tool NOISE-SIGMA
      tools for one distortion need no scores: pristine photos are distorted step by step

Measured values are kept beside the output as they come, in a file that ends in .raw.jsonl: after Ctrl-C the same
command continues, and another fit of the same images is quick. A tool is refused, and keeps its curve of --base, if it
could measure fewer than 20 images or does not follow the scores in its own direction. A full-reference curve gives an
undistorted image 5 and extreme distortions at most about 2, which may shift the middle of the curve away from the
points: look at the picture. Then name the profile in a configuration:

  calibration: mine.yaml

Labels are what "agenticiqa evaluate" takes: labels.csv (columns image and mos, higher is better, and optionally
reference and split), a .tsv, .jsonl or .parquet table, a folder with such a table or of save_to_disk,
hub:OWNER/NAME@REVISION, or a data set by its name:

  agenticiqa calibrate kadid10k --root /data --out mine.yaml

exit status: 0 all was fitted, 1 some tools were refused, or some images not rated (named on stderr), 2 usage
"""
OPTIMIZE_EXAMPLES = """\
examples:
  agenticiqa optimize labels.csv --backend openai.gpt-4o-mini --reflection-backend openai.gpt-4o --out tuned/ --dry-run
      what it would cost; without --dry-run it tunes the scorer's prompt, by 400 judgments
  agenticiqa optimize labels.csv --config mine.yaml --reflection-backend openai.gpt-4o --reflection-price 2.5,10 \\
      --max-usd 5 --out tuned/
      never spends more; the best that was found until then is compared and written
  agenticiqa optimize labels.csv ... --out tuned/ --budget 800      continues a search of 400; nothing is judged twice
  agenticiqa optimize more.csv ... --from tuned/ --out better/      begins with prompts that were tuned before
  agenticiqa assess photo.jpg --config mine.yaml --prompts tuned/   uses the outcome

The folder has prompts.json, fusion.yaml (the fusion fitted with these prompts, which changes scores also where the
original prompts are saved) and report.html. After Ctrl-C or an outage the same command continues.

exit status: 0 the tuned prompts are kept, 1 not shown to help on held-out labels: the original prompts are saved,
2 usage
"""
COMPARE_EXAMPLES = """\
examples:
  agenticiqa compare runs/mine runs/tuned                    leaderboard, differences, p values, power
  agenticiqa compare runs/* --markdown - > comparison.md     the same as Markdown
  agenticiqa compare runs/niqe runs/brisque                  folders with runs of several sets: scorers by sets
  agenticiqa compare a.jpg b.webp --reference original.png   images: ranking, bytes, every metric
  agenticiqa compare shot1.jpg shot2.jpg --html both.html    images and their maps side by side
"""
REPORT_EXAMPLES = """\
examples:
  agenticiqa report runs/live --html report.html               one page, to be opened from disk
  agenticiqa report runs/live runs/other --html both.html      several runs, compared with the first
  agenticiqa report runs/live --latex table.tex --csv table.csv
"""


def add_evaluate_arguments(parser: ArgumentParser) -> None:
    """The options of ``agenticiqa evaluate``."""
    complete_files(
        parser.add_argument(
            "tasks",
            metavar="TASK",
            type=Path,
            nargs="+",
            help=f"{DATA_HELP}; of several also the mean is given",
        )
    )
    add_label_arguments(parser)
    parser.add_argument(
        "--limit",
        metavar="N",
        type=int,
        help="only the first N of these rows, to try it out; a report on more rows in the folder of the run stays, and "
        "this one is written beside it as report-first-N",
    )
    parser.add_argument("--query", metavar="Q", default=DEFAULT_QUERY, help='the question (default: "%(default)s")')
    parser.add_argument("--scorer", metavar="S", help=f"measure this in place of the program: {SCORER_FORMS}")
    parser.add_argument(
        "--scorer-lower-is-better",
        action="store_true",
        default=None,
        help="of a --scorer module:function; metrics declare their own direction",
    )
    parser.add_argument(
        "--shorter-side",
        metavar="PIXELS",
        type=int,
        help="of a --scorer: scale larger images to so many pixels of their shorter side first (SPAQ in papers: 512)",
    )
    parser.add_argument(
        "--by", choices=GROUPS, help="also print the agreement by this column of the labels (report.md has all)"
    )
    parser.add_argument(
        "--splits",
        metavar="N|FILE",
        help="also give the median over the test parts of N random 80/20 splits by content, as papers do, or of the "
        'splits of a FILE: CSV, a column image and a column for each split with "test" in it',
    )
    parser.add_argument(
        "--ablate",
        metavar="PARTS",
        help=f"judge the images anew without each of these parts of the program: {','.join(PARTS)}",
    )
    parser.add_argument(
        "--baselines",
        action="store_true",
        help="also measure every embedded metric of overall quality on all images, kept in RUN/baseline-NAME",
    )
    add_backend_arguments(parser)
    parser.add_argument(
        "--out",
        metavar="RUN",
        type=Path,
        help="the folder of the run (default: runs/<data>-<backend>), which is resumed; of several tasks the folder "
        "above theirs",
    )
    add_workers_argument(parser)
    add_dry_run_argument(parser)
    add_batch_argument(parser)
    add_raw_csv(parser.add_argument)
    add_question_arguments(parser)


def add_question_arguments(parser: ArgumentParser) -> None:
    """The options of ``agenticiqa evaluate`` that only benchmarks of questions take."""
    add = parser.add_argument_group(
        "questions", "For benchmarks of questions, which `agenticiqa datasets` lists."
    ).add_argument
    add("--circular", action="store_true", help="ask every question with its options in all rotations")
    add("--judge", metavar="B", help="explanations: the model that judges them against the reference texts")
    add("--judge-api-base", metavar="URL", help="with --judge: the address of an OpenAI-compatible server")
    add("--rounds", metavar="N", type=int, default=1, help="times each is judged (Q-Bench: 5; default: %(default)s)")


def add_compare_arguments(parser: ArgumentParser) -> None:
    """The options of ``agenticiqa compare``."""
    parser.epilog, parser.formatter_class = COMPARE_EXAMPLES, RawDescriptionHelpFormatter
    complete_folders(
        parser.add_argument(
            "runs",
            metavar="RUN|IMAGE",
            nargs="+",
            type=Path,
            help="folders that evaluate wrote (--out), of the same data or several sets each; or image files",
        )
    )
    add_name_argument(parser)
    for form in TABLE_FORMS:
        complete_files(
            parser.add_argument(f"--{form}", metavar="FILE", type=Path, help=f"write all tables as {form} (-: stdout)")
        )
    add_raw_csv(parser.add_argument)
    add_image_options(parser)


def add_report_arguments(parser: ArgumentParser) -> None:
    """The options of ``agenticiqa report``."""
    parser.epilog, parser.formatter_class = REPORT_EXAMPLES, RawDescriptionHelpFormatter
    complete_folders(
        parser.add_argument("runs", metavar="RUN", nargs="+", type=Path, help="a folder that evaluate wrote (--out)")
    )
    add_name_argument(parser)
    parser.add_argument("--mos-range", nargs=2, type=float, metavar=("LOW", "HIGH"), help=MOS_RANGE_HELP)
    for option, about in (
        ("--html", "write a page: tables, charts, the best and worst images; their copies go to a folder beside it"),
        ("--markdown", "write the table of figures as Markdown"),
        ("--latex", "write it as LaTeX, with booktabs"),
        ("--csv", "write it as CSV, unrounded, with the ends of the intervals"),
    ):
        complete_files(parser.add_argument(option, metavar="FILE", type=Path, help=about))
    add_raw_csv(parser.add_argument)


def add_name_argument(parser: ArgumentParser) -> None:
    """``--name``, of the commands that show runs."""
    parser.add_argument(
        "--name", metavar="NAME", action="append", help="what a run is called, once for each, in order (its folder)"
    )


def add_datasets_arguments(parser: ArgumentParser) -> None:
    """The options of ``agenticiqa datasets``."""
    parser.add_argument("name", metavar="NAME", nargs="?", help="one of them (default: list all)")
    complete_folders(
        parser.add_argument("--root", metavar="DIR", type=Path, help="check the copy in this folder: DIR/FOLDER or DIR")
    )


def add_calibrate_arguments(parser: ArgumentParser) -> None:
    """The options of ``agenticiqa calibrate``."""
    parser.epilog, parser.formatter_class = CALIBRATE_EXAMPLES, RawDescriptionHelpFormatter
    data = parser.add_argument(
        "data",
        nargs="+",
        type=Path,
        metavar="DATA",
        help="photos or their folders; labels with opinion scores; rows of a finished run (.jsonl)",
    )
    complete_files(data)
    parser.add_argument(
        "--out",
        metavar="FILE",
        type=Path,
        help=f"the profile to write ({FUSION_OUT} for the fusion, {CURVES_OUT} for curves, adapter.npz)",
    )
    parser.add_argument("--force", action="store_true", help="replace an existing profile and picture")
    add_label_arguments(parser)
    parser.add_argument("--adapt", action="store_true", help="fit an adapter of the learned scorer to the labels")
    curves = parser.add_argument_group("the tools' curves")
    curves.add_argument("--tool", nargs="+", metavar="NAME", help='the tools to fit ("agenticiqa tools" lists them)')
    curves.add_argument("--name", metavar="N", help="name of the data in the profile (default: the folder's name)")
    curves.add_argument("--base", metavar="P", help="the profile of all other curves (default)")
    curves.add_argument("--plot", metavar="PNG", type=Path, help="the picture of the fit (default: beside the profile)")
    fusion = parser.add_argument_group("the fusion")
    fusion.add_argument(
        "--no-labels", action="store_true", help="do not use the opinion scores in the rows of evaluate"
    )
    add_workers_argument(parser)
    add_dry_run_argument(parser)
    add_batch_argument(parser)
    add_backend_arguments(parser)


def add_optimize_arguments(parser: ArgumentParser) -> None:
    """The options of ``agenticiqa optimize``."""
    parser.epilog, parser.formatter_class = OPTIMIZE_EXAMPLES, RawDescriptionHelpFormatter
    complete_files(
        parser.add_argument(
            "labels", metavar="DATA", type=Path, help=f"labeled images: {DATA_HELP}; or a benchmark of questions"
        )
    )
    add = parser.add_argument
    complete_folders(
        add("--out", metavar="DIR", type=Path, required=True, help="the folder for prompts, fusion profile and report")
    )
    add(
        "--stage",
        choices=TUNED_STAGES,
        default="scoring",
        help="what is tuned: scoring and all by opinion scores, answering and planning by benchmarks of questions, "
        "detection by named distortions (default: %(default)s)",
    )
    add("--budget", metavar="N", type=int, default=400, help="how often a question may be judged (%(default)s)")
    add("--starts", metavar="N", type=int, default=3, help="first proposals, of which the best goes on (%(default)s)")
    add("--exemplars", metavar="N", type=int, default=0, help="show the scorer N labeled images, if that helps")
    complete_files(add("--from", metavar="P", dest="warm", help="begin with these tuned prompts (a warm start)"))
    add(
        "--optimizer",
        choices=OPTIMIZERS,
        default="reflect",
        help="reflect: a model rewrites instructions from the largest errors, and what looks better is measured again; "
        "the others are DSPy's GEPA, MIPROv2 (extra: optimize), SIMBA and BootstrapFewShot (default: %(default)s)",
    )
    add("--held-out", metavar="SHARE", type=float, default=0.4, help="of the contents (%(default)s)")
    add("--seed", metavar="N", type=int, default=0, help="of the split and of the search (%(default)s)")
    add("--workers", metavar="N", type=int, default=WORKERS, help="images judged at once (%(default)s)")
    add("--log-dir", metavar="DIR", type=Path, help="what was measured, for the same command (default: OUT/search)")
    add_dry_run_argument(parser)
    writer = parser.add_argument_group("the model that writes instructions").add_argument
    writer("--reflection-backend", metavar="R", help="which, such as openai.gpt-4o")
    writer("--reflection-api-base", metavar="URL", help="the address of its server, if it is not a provider's")
    writer("--reflection-key-env", metavar="NAME", help="the environment variable with that server's key")
    writer("--reflection-price", metavar="IN,OUT", help="USD for a million tokens, such as 2.5,10; for --max-usd")
    add_label_arguments(parser)
    add_backend_arguments(parser)


def add_label_arguments(parser: ArgumentParser) -> None:
    """The options of ``OF_LABELS``."""
    complete_folders(
        parser.add_argument(
            "--root",
            metavar="DIR",
            type=Path,
            help="the folder of the images: that the archive of a data set is in, or that the paths of own data are "
            "relative to (default: the folder of the table)",
        )
    )
    parser.add_argument("--split", metavar="S", help="only the rows of this split")
    parser.add_argument(
        "--partial",
        action="store_true",
        default=None,
        help="of a data set: a part of it is meant, and is told; rows without their files are left out",
    )
    own = parser.add_argument_group("own data")
    own.add_argument("--image-column", metavar="C", help="the column of the images (default: image, filename, ...)")
    own.add_argument(
        "--reference-column",
        metavar="C",
        help="the column of the references (default: reference, ref_img, hq, ...; none: they are not used)",
    )
    own.add_argument("--mos-column", metavar="C", help="the column of the scores (default: mos, score, ...)")
    own.add_argument(
        "--lower-is-better",
        action=BooleanOptionalAction,
        help="whether low scores are the good ones, as for a DMOS; the MOS is then the mirror image in the scale",
    )
    own.add_argument("--mos-range", nargs=2, type=float, metavar=("LOW", "HIGH"), help=MOS_RANGE_HELP)
