"""``assess --group`` and ``--xmp``: the best of near duplicates, and ratings in sidecars for photo managers."""

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from xml.sax.saxutils import quoteattr

from PIL import Image

from agenticiqa.programs.backends.cores import available_cores
from agenticiqa.programs.batch.groups import AlbumPhoto, grouped, reasons
from agenticiqa.programs.batch.job import Job
from agenticiqa.programs.cli import render
from agenticiqa.programs.cli.printable import print_error, print_note, printable
from agenticiqa.programs.images import path_of
from agenticiqa.programs.images.files import printable_path, write_atomically
from agenticiqa.programs.images.phash import phash
from agenticiqa.programs.page.entry import Entry

WRITER = "agenticiqa"
REJECTED = -1  # as the XMP specification defines xmp:Rating
# The sidecar of a.jpg is a.jpg.xmp, as darktable and digiKam read it.
SIDECAR = """<?xpacket begin="" id="W5M0MpCehiHzreSzNTczkc9d"?>
<x:xmpmeta xmlns:x="adobe:ns:meta/" x:xmptk="{writer}">
 <rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#">
  <rdf:Description rdf:about="" xmlns:xmp="http://ns.adobe.com/xap/1.0/" xmlns:agenticiqa="urn:agenticiqa:1"
    xmp:Rating="{rating}" agenticiqa:reason={reason}/>
 </rdf:RDF>
</x:xmpmeta>
<?xpacket end="w"?>
"""


def with_groups(entries: Mapping[Job, Entry]) -> dict[Job, Entry]:
    """The entries, those of near duplicates with what ``Entry.group`` says; the groups are printed."""
    with ThreadPoolExecutor(available_cores()) as pool:
        found = render.progress(pool.map(_candidate, entries, entries.values()), len(entries), "comparing")
        candidates = {job: each for job, each in zip(entries, found, strict=True) if each is not None}
    groups = grouped(candidates)
    lines, noted = [], dict(entries)
    for number, group in enumerate(groups, 1):
        for place, (job, reason) in enumerate(zip(group, reasons([candidates[each] for each in group]), strict=True)):
            noted[job] = replace(entries[job], group=reason, is_near_copy=place > 0)
            lines.append([str(number), "near copy" if place else "keep", entries[job].image, reason])
    if lines:
        render.print_lines(("group", "verdict", "image", "why"), lines)
    copies = len(lines) - len(groups)
    print(f"{len(entries)} images: {len(entries) - copies} to keep, {copies} near copies in {len(groups)} groups")
    return noted


def write_sidecars(entries: Mapping[Job, Entry]) -> None:
    """Write a rating and its reason beside each photo that has a score; a sidecar of another program stays as it is."""
    written, kept = 0, 0
    for job, entry in entries.items():
        path = path_of(job.image)
        if path is None or entry.score is None:
            continue
        sidecar = path.with_name(f"{path.name}.xmp")
        rating = REJECTED if entry.is_near_copy else max(1, min(5, round(entry.score)))
        text = entry.group or f"score {entry.score:.2f}: {entry.finding or 'no visible distortion'}"
        if sidecar.exists() and f'xmptk="{WRITER}"'.encode() not in sidecar.read_bytes():
            kept += 1
            continue
        content = SIDECAR.format(writer=WRITER, rating=rating, reason=quoteattr(printable(printable_path(text))))
        write_atomically(sidecar, content)
        written += 1
    print_note(f"{written} sidecars are written (*.xmp, beside the photos)")
    if kept:
        print_error(f"{kept} sidecars of other programs stay as they are")


def _candidate(job: Job, entry: Entry) -> AlbumPhoto | None:
    """What is compared of a photo on disk; ``None`` for what is none any more."""
    path = path_of(job.image)
    found = phash(path) if path else None
    if path is None or found is None:
        return None
    with Image.open(path) as image:
        pixels = image.width * image.height
    return AlbumPhoto(found, entry.score, pixels, path.stat().st_size, path.name)
