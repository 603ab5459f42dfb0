"""``agenticiqa batches``: list, collect or cancel the batches of a run with ``--batch``."""

from dataclasses import asdict
from pathlib import Path

from agenticiqa.programs.backends.limits import RunLimits
from agenticiqa.programs.backends.provider_batches.driver import Batches
from agenticiqa.programs.backends.provider_batches.manifest import ALL, Batch, Manifest
from agenticiqa.programs.cli.arguments import BatchesOptions
from agenticiqa.programs.cli.batching import batches_beside
from agenticiqa.programs.cli.output_paths import check_outputs
from agenticiqa.programs.cli.printable import print_note
from agenticiqa.programs.cli.status import OK, SOME_FAILED
from agenticiqa.programs.cli.views import View, show
from agenticiqa.programs.errors import UserError
from agenticiqa.programs.images.files import printable_path
from agenticiqa.programs.page.table import Table, data_of, number


def run(args: BatchesOptions) -> int:
    """Cancel or collect batches as the options say, and list them."""
    check_outputs(args)
    folder = folder_of(Path(args.run))
    if args.collect or args.cancel is not None:
        batches = Batches(folder, RunLimits(), print_note)
        try:
            if args.cancel is not None:
                batches.cancel(args.cancel)
            batches.look()
        finally:
            batches.close()
    manifest = Manifest(folder, shared=True)
    try:
        view = batches_view(manifest.batches(ALL), manifest.answered())
    finally:
        manifest.close()
    return OK if show(args, view) else SOME_FAILED


def folder_of(run: Path) -> Path:
    """Return the folder of a run's batches. Raises UserError if there is none."""
    candidates = (run, batches_beside(run), batches_beside(run / "results.jsonl"))
    folder = next((folder for folder in candidates if (folder / "manifest.sqlite").is_file()), None)
    if folder is None:
        raise UserError(
            f"{printable_path(run)}: no batches found; name the results file or folder of a run with --batch"
        )
    return folder


def batches_view(batches: list[Batch], answered: dict[int, int]) -> View:
    """Return the batches as a table, and with all their fields as data."""
    rows = [{**asdict(batch), "answered": answered.get(batch.n, 0)} for batch in batches]
    lines = [
        [
            str(batch.n),
            batch.state,
            f"{answered.get(batch.n, 0):,} of {batch.requests:,}",
            number(batch.bytes / 1e6, ".1f"),
            batch.backend,
            batch.handle or "-",
            f"{batch.made} UTC",
            batch.message,
        ]
        for batch in batches
    ]
    table = Table(("batch", "state", "answered", "MB", "sent to", "handle", "made", "said"), lines)
    return View([table], data=[data_of(rows)], document=rows)
