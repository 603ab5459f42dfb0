"""``agenticiqa batches``: list, collect or cancel the batches of a run with ``--batch``."""

import json
from argparse import Namespace
from dataclasses import asdict
from pathlib import Path

from agenticiqa.programs.backends.limits import Limits
from agenticiqa.programs.backends.provider_batches.driver import Batches
from agenticiqa.programs.backends.provider_batches.manifest import ALL, Batch, Manifest
from agenticiqa.programs.cli.batching import batches_beside
from agenticiqa.programs.cli.printable import print_note
from agenticiqa.programs.cli.render import print_lines
from agenticiqa.programs.cli.status import OK
from agenticiqa.programs.errors import UserError
from agenticiqa.programs.images.files import printable_path


def run(args: Namespace) -> int:
    """Cancel or collect batches as the options say, and list them."""
    folder = folder_of(Path(args.run))
    if args.collect or args.cancel is not None:
        batches = Batches(folder, Limits(), print_note)
        try:
            if args.cancel is not None:
                batches.cancel(args.cancel)
            batches.look()
        finally:
            batches.close()
    manifest = Manifest(folder, shared=True)
    try:
        show(manifest.batches(ALL), manifest.answered(), as_json=args.json)
    finally:
        manifest.close()
    return OK


def folder_of(given: Path) -> Path:
    """Return the folder of a run's batches. Raises UserError if there is none."""
    tried = (given, batches_beside(given), batches_beside(given / "results.jsonl"))
    found = next((folder for folder in tried if (folder / "manifest.sqlite").is_file()), None)
    if found is None:
        raise UserError(
            f"{printable_path(given)}: no batches found; name the results file or folder of a run with --batch"
        )
    return found


def show(batches: list[Batch], answered: dict[int, int], as_json: bool) -> None:
    """Print the batches as a table, or as a JSON list."""
    if as_json:
        print(json.dumps([{**asdict(each), "answered": answered.get(each.n, 0)} for each in batches], indent=2))
        return
    lines = [
        [
            str(each.n),
            each.state,
            f"{answered.get(each.n, 0):,} of {each.requests:,}",
            f"{each.bytes / 1e6:.1f}",
            each.backend,
            each.handle or "-",
            f"{each.made} UTC",
            each.message,
        ]
        for each in batches
    ]
    print_lines(("batch", "state", "answered", "MB", "sent to", "handle", "made", "said"), lines, numbers=(3,))
