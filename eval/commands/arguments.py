"""The options of the commands that measure and tune; only the declarations, as in ``programs/cli/arguments.py``."""

from argparse import BooleanOptionalAction
from pathlib import Path

from agenticiqa.configs.options import Group, Option, Options
from agenticiqa.eval.names import GROUPS, MOS_RANGE_HELP, OPTIMIZERS, PARTS, SCORER_FORMS, TABLE_FORMS, TUNED_STAGES
from agenticiqa.programs.backends.cores import WORKERS
from agenticiqa.programs.cli.arguments import BATCH, COMPARE_IMAGES, DRY_RUN, MODELS, QUERY, RAW_CSV, WORKERS_OPTION

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

MOS_RANGE = Option("--mos-range LOW HIGH", MOS_RANGE_HELP, float)
NAME = Option("--name NAME", "what a run is called, once for each, in order (its folder)", several=True)
LABELS: Options = (
    Option(
        "--root DIR",
        "the folder of the images: that the archive of a data set is in, or that the paths of own data are relative to "
        "(default: the folder of the table)",
        Path,
    ),
    Option("--split S", "only the rows of this split"),
    Option(
        "--partial",
        "of a data set: a part of it is meant, and is told; rows without their files are left out",
        bool,
    ),
    Group(
        (
            Option("--image-column C", "the column of the images (default: image, filename, ...)"),
            Option(
                "--reference-column C",
                "the column of the references (default: reference, ref_img, hq, ...; none: they are not used)",
            ),
            Option("--mos-column C", "the column of the scores (default: mos, score, ...)"),
            Option(
                "--lower-is-better",
                "whether low scores are the good ones, as for a DMOS; the MOS is then the mirror image in the scale",
                BooleanOptionalAction,
            ),
            MOS_RANGE,
        ),
        "own data",
    ),
)
ABLATE = Option(
    "--ablate PARTS", f"judge the images anew without each of these parts of the program: {','.join(PARTS)}"
)
OF_THE_PROGRAM: Options = (QUERY, ABLATE, MODELS)  # options that a scorer does not use

EVALUATE: Options = (
    Option("TASK", f"{DATA_HELP}; of several also the mean is given", Path, nargs="+", dest="tasks"),
    *LABELS,
    Option(
        "--limit N",
        "only the first N of these rows, to try it out; a report on more rows in the folder of the run stays, and this "
        "one is written beside it as report-first-N",
        int,
        at_least=1,
    ),
    QUERY,
    Option("--scorer S", f"measure this in place of the program: {SCORER_FORMS}"),
    Option("--scorer-lower-is-better", "of a --scorer module:function; metrics declare their own direction", bool),
    Option(
        "--shorter-side PIXELS",
        "of a --scorer: scale larger images to so many pixels of their shorter side first (SPAQ in papers: 512)",
        int,
        at_least=1,
    ),
    Option("--by", "also print the agreement by this column of the labels (report.md has all)", choices=GROUPS),
    Option(
        "--splits N|FILE",
        "also give the median over the test parts of N random 80/20 splits by content, as papers do, or of the splits "
        'of a FILE: CSV, a column image and a column for each split with "test" in it',
    ),
    ABLATE,
    Option(
        "--baselines",
        "also measure every embedded metric of overall quality on all images, kept in RUN/baseline-NAME",
        bool,
    ),
    MODELS,
    Option(
        "--out RUN",
        "the folder of the run (default: runs/<data>-<backend>), which is resumed; of several tasks the folder above "
        "theirs",
        Path,
    ),
    WORKERS_OPTION,
    DRY_RUN,
    *BATCH,
    RAW_CSV,
    Group(
        (
            Option("--circular", "ask every question with its options in all rotations", bool),
            Option("--judge B", "explanations: the model that judges them against the reference texts"),
            Option("--judge-api-base URL", "with --judge: the address of an OpenAI-compatible server"),
            Option("--rounds N", "times each is judged (Q-Bench: 5; default: %(default)s)", int, 1, at_least=1),
        ),
        "questions",
        "For benchmarks of questions, which `agenticiqa datasets` lists.",
    ),
)
RUNS_SHOWN: Options = (
    NAME,
    *(Option(f"--{form} FILE", f"write all tables as {form} (-: stdout)", Path) for form in TABLE_FORMS),
)
COMPARE: Options = (
    Option(
        "RUN|IMAGE",
        "folders that evaluate wrote (--out), of the same data or several sets each; what assess wrote (--jsonl FILE, "
        "--parquet DIR); or image files",
        Path,
        nargs="+",
        dest="runs",
    ),
    *RUNS_SHOWN,
    RAW_CSV,
    *COMPARE_IMAGES,
)
REPORT: Options = (
    Option(
        "RUN",
        "a folder that evaluate wrote (--out), or what assess wrote (--jsonl FILE, --parquet DIR)",
        Path,
        nargs="+",
        dest="runs",
    ),
    NAME,
    MOS_RANGE,
    Option(
        "--html FILE",
        "write a page: tables, charts, the best and worst images; their copies go to a folder beside it",
        Path,
    ),
    Option("--markdown FILE", "write the table of figures as Markdown", Path),
    Option("--latex FILE", "write it as LaTeX, with booktabs", Path),
    Option("--csv FILE", "write it as CSV, unrounded, with the ends of the intervals", Path),
    RAW_CSV,
)
DATASETS: Options = (
    Option("NAME", "one of them (default: list all)", nargs="?", dest="name"),
    Option("--root DIR", "check the copy in this folder: DIR/FOLDER or DIR", Path),
)
CURVES: Options = (
    Option("--tool NAME", 'the tools to fit ("agenticiqa tools" lists them)', nargs="+"),
    Option("--name N", "name of the data in the profile (default: the folder's name)"),
    Option("--base P", "the profile of all other curves (default)"),
    Option("--plot PNG", "the picture of the fit (default: beside the profile)", Path),
)
FUSION: Options = (Option("--no-labels", "do not use the opinion scores in the rows of evaluate", bool),)
CALIBRATE: Options = (
    Option(
        "DATA",
        "photos or their folders; labels with opinion scores; rows of a finished run (.jsonl)",
        Path,
        nargs="+",
        dest="data",
    ),
    Option(
        "--out FILE",
        f"the profile to write ({FUSION_OUT} for the fusion, {CURVES_OUT} for curves, adapter.npz)",
        Path,
    ),
    Option("--force", "replace an existing profile and picture", bool),
    *LABELS,
    Option("--adapt", "fit an adapter of the learned scorer to the labels", bool),
    Group(CURVES, "the tools' curves"),
    Group(FUSION, "the fusion"),
    WORKERS_OPTION,
    DRY_RUN,
    *BATCH,
    MODELS,
)
OPTIMIZE: Options = (
    Option("DATA", f"labeled images: {DATA_HELP}; or a benchmark of questions", Path, dest="labels"),
    Option("--out DIR", "the folder for prompts, fusion profile and report", Path, required=True),
    Option(
        "--stage",
        "what is tuned: scoring and all by opinion scores, answering and planning by benchmarks of questions, "
        "detection by named distortions (default: %(default)s)",
        choices=TUNED_STAGES,
        default="scoring",
    ),
    Option("--budget N", "how often a question may be judged (%(default)s)", int, 400, at_least=1),
    Option("--starts N", "first proposals, of which the best goes on (%(default)s)", int, 3, at_least=1),
    Option("--exemplars N", "show the scorer N labeled images, if that helps", int, 0),
    Option("--from FILE", "begin with these tuned prompts (a warm start)", dest="warm"),
    Option(
        "--optimizer",
        "reflect: a model rewrites instructions from the largest errors, and what looks better is measured again; the "
        "others are DSPy's GEPA, MIPROv2 (extra: optimize), SIMBA and BootstrapFewShot (default: %(default)s)",
        choices=OPTIMIZERS,
        default="reflect",
    ),
    Option("--held-out SHARE", "of the contents (%(default)s)", float, 0.4),
    Option("--seed N", "of the split and of the search (%(default)s)", int, 0),
    Option("--workers N", "images judged at once (%(default)s)", int, WORKERS, at_least=1),
    Option("--log-dir DIR", "what was measured, for the same command (default: OUT/search)", Path),
    DRY_RUN,
    Group(
        (
            Option("--reflection-backend R", "which, such as openai.gpt-4o"),
            Option("--reflection-api-base URL", "the address of its server, if it is not a provider's"),
            Option("--reflection-key-env NAME", "the environment variable with that server's key"),
            Option("--reflection-price IN,OUT", "USD for a million tokens, such as 2.5,10; for --max-usd"),
        ),
        "the model that writes instructions",
    ),
    *LABELS,
    MODELS,
)
