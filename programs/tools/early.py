"""Tools that measure a whole image are run once for each loaded image, and may be begun before they are asked for."""

from collections.abc import Iterable
from concurrent.futures import Future
from threading import Lock
from weakref import WeakKeyDictionary

from agenticiqa.programs.images import LoadedImage
from agenticiqa.programs.images.memo import once
from agenticiqa.programs.tools.tool import Tool, run_tool
from agenticiqa.signatures.types import GLOBAL, OVERALL, ToolCall

Key = tuple[str, str, str | None]

_lock = Lock()
_runs: WeakKeyDictionary[LoadedImage, dict[Key, Future[ToolCall]]] = WeakKeyDictionary()


def run_once(card: Tool, image: LoadedImage, reference: LoadedImage | None) -> ToolCall:
    """The call of this tool on the whole image; a second caller waits for the first one's."""
    key: Key = (card.name, repr(card.calibration), reference.sha256 if reference else None)
    with _lock:
        runs = _runs.setdefault(image, {})
    pristine = reference.pixels if reference else None
    return once(runs, _lock, key, lambda: run_tool(card, image.pixels, pristine, region=GLOBAL, distortion=OVERALL))


def begin(cards: Iterable[Tool], image: LoadedImage, reference: LoadedImage | None) -> None:
    """Run these tools now, for whoever asks later."""
    for card in cards:
        run_once(card, image, reference)
