"""Find the distortions of an image from measurements alone.

With a reference, severity is based on the difference between both images; without one, on the distance from the usual
values of photos. Severities combine curves over single measurements (``curves``)
with the outputs of trained networks (``detector``); the explanations state the measured values. A gray or toned picture
counts as undistorted without a reference, because the missing color may be intended.
"""

from dataclasses import replace

from agenticiqa.programs.images.loaded import LoadedImage
from agenticiqa.programs.images.reference_check import recolored
from agenticiqa.programs.images.regions import SMALLEST, crop
from agenticiqa.programs.offline.measured.curves import findings_from
from agenticiqa.programs.offline.measured.detector import predict
from agenticiqa.programs.offline.measured.findings import GRAY, TONED, Finding, in_part, with_source
from agenticiqa.programs.offline.measured.local_damage import LEAST_SEVERITY, Damage, local_change, local_damage
from agenticiqa.programs.tools.features.by_name import all_statistics
from agenticiqa.programs.tools.features.image_features import features, has_features
from agenticiqa.programs.tools.statistics.tonal import Monochrome, monochrome_of
from agenticiqa.signatures.categories import COLOR, COLOR_CAST
from agenticiqa.signatures.types import Box
from agenticiqa.signatures.vocabulary import DetectableDistortion

RIM = 32  # pixels
SWAPPED = 3.0  # severity of the reference's colors with swapped channels
INTENDED = "This may be intended, so it does not count as a distortion."
WITHOUT_COLOR: dict[Monochrome, Finding] = {
    "gray": Finding(0.0, GRAY, f"The picture is gray, without any color. {INTENDED}"),
    "toned": Finding(0.0, TONED, f"The picture is toned in one hue, such as sepia. {INTENDED}"),
}


def findings_of(image: LoadedImage, reference: LoadedImage | None = None) -> dict[DetectableDistortion, Finding]:
    """Return a finding for each of the seven categories, in the order of ``DETECTABLE``, with its local damage.

    A damaged part is measured alone, and the smaller it is, the less its severity counts
    (``findings.severity_of_whole``). If only a part differs from the reference, the rest is measured without it.
    Otherwise the result is that of ``findings_of_whole`` for the assessed part; boxes are in pixels of the whole image.
    """
    assessed, (x, y) = image.assessed, (image.assessed_box or (0, 0))[:2]
    parts, undamaged = damaged_parts(assessed, reference), assessed
    if reference is not None and parts:
        # Blur in a third of the image looks like coding to the network (less detail), so the rest is measured alone.
        undamaged = _restored(assessed, reference, next(iter(parts.values())).box)
    findings = findings_of_whole(undamaged, reference)
    for name, damage in parts.items():
        part = findings_of_whole(*_without_rim(assessed, reference, damage.box))[name]
        left, top, right, bottom = damage.box
        damage = replace(damage, box=(left + x, top + y, right + x, bottom + y))
        findings[name] = in_part(findings[name], part, damage)
    return findings


def findings_of_whole(image: LoadedImage, reference: LoadedImage | None = None) -> dict[DetectableDistortion, Finding]:
    """Return a finding for each of the seven categories, in the order of ``DETECTABLE``, for the whole image.

    Without a reference a monochrome image has no color distortions; their subtype is then ``GRAY`` or ``TONED``. A
    reference must have the same size. An image compared with itself has severity 0 in every category. Images with a
    side below 64 pixels have no features, so that only the curves count. Raises ToolError for damaged weights.
    """
    own = features(image) if has_features(image) else None
    if reference is None:
        predictions = predict(texture=own.texture, tone=own.tone) if own else {}
        findings = findings_from(_measurements(image), None, predictions)
        if kind := monochrome_of(image):
            findings[COLOR] = WITHOUT_COLOR[kind]
    else:
        predictions = predict(compared=own.all - features(reference).all) if own else {}
        findings = findings_from(_measurements(image), _measurements(reference), predictions)
        if colors := recolored(image, reference):
            findings[COLOR] = Finding(SWAPPED, COLOR_CAST, f"Compared with the reference, {colors}.", {COLOR_CAST: 1.0})
    return {name: with_source(finding) for name, finding in findings.items()}


def damaged_parts(image: LoadedImage, reference: LoadedImage | None) -> Damage:
    """Return the distortions in only a part of the image; empty for most images. Raises ToolError as findings_of."""
    if reference is None:
        kind = monochrome_of(image)
        return {name: part for name, part in local_damage(image).items() if kind is None or name != COLOR}
    change = local_change(image.pixels, reference.pixels)
    if change is None:
        return {}
    return {
        name: replace(change, severity=finding.severity)
        for name, finding in findings_of_whole(*_without_rim(image, reference, change.box)).items()
        if finding.severity >= LEAST_SEVERITY
    }


def _restored(image: LoadedImage, reference: LoadedImage, box: Box) -> LoadedImage:
    """Return the image with a changed part and its rim replaced by the reference."""
    left, top, right, bottom = box
    rows, columns = slice(max(top - RIM, 0), bottom + RIM), slice(max(left - RIM, 0), right + RIM)
    pixels = image.pixels.copy()
    pixels[rows, columns] = reference.pixels[rows, columns]
    return image.changed(pixels=pixels)


def _without_rim(image: LoadedImage, reference: LoadedImage | None, box: Box) -> tuple[LoadedImage, LoadedImage | None]:
    """Return a damaged part of both images without its rim, which is partly undamaged, if it is large enough."""
    left, top, right, bottom = box
    across, down = (min(RIM, max(side - SMALLEST, 0) // 2) for side in (right - left, bottom - top))
    inside = (left + across, top + down, right - across, bottom - down)
    return crop(image, inside), crop(reference, inside) if reference else None


def _measurements(image: LoadedImage) -> dict[str, float]:
    values = dict(all_statistics(image))
    if has_features(image):
        values |= {"lost_detail": features(image).lost_detail, "color_noise": features(image).color_noise}
    return values
