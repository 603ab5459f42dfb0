"""Accept or refuse photos by a policy. Cheap checks come first; only photos that pass them are assessed.

A photo is decoded at the smallest size that its checks allow. The quality of a JPEG is in its header. For a photo that
was decoded at a smaller size, ``effective_side`` is a lower bound.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from functools import partial
from typing import Any, TypeAlias

from PIL import Image

from agenticiqa.configs import ConfigError
from agenticiqa.configs.policy import GatePolicy
from agenticiqa.programs.batch.job import Job
from agenticiqa.programs.errors import AgenticIQAError
from agenticiqa.programs.images.decoding import MAX_PIXELS, decode, open_bytes, upright_size
from agenticiqa.programs.images.files import one_line
from agenticiqa.programs.images.sources import read_source
from agenticiqa.programs.tools.numerics.pixels import single_luma
from agenticiqa.programs.tools.statistics.effective_size import effective_side
from agenticiqa.programs.tools.statistics.jpeg_quality import quality_in
from agenticiqa.programs.tools.statistics.parts import parts_of
from agenticiqa.signatures.lexicon import fold_distortion, fold_severity
from agenticiqa.signatures.vocabulary import SEVERITIES, everyday_name

MARGIN = 1.25  # a copy of this multiple of the minimum effective side is large enough for the check
ENLARGED = 0.9  # an image with detail for a smaller share of its longer side counts as enlarged
SMALLEST = 64  # the longer side of a copy that only checks whether the file can be decoded
KINDS = ("graphic", "page", "medical", "instrument", "gray", "blank", "thin", "too small")

MEASURED = ("width", "height", "jpeg_quality", "effective_side")  # fields of a row, and of a result, for file checks

Assess: TypeAlias = Callable[[Sequence[Job]], Iterator[tuple[Job, Mapping[str, Any] | Exception]]]


@dataclass
class GateResult:
    """The result for a photo: the measurements, and the reasons for refusing it, each with a sentence."""

    image: str
    reasons: dict[str, str] = field(default_factory=dict)
    measured: dict[str, Any] = field(default_factory=dict)

    @property
    def accepted(self) -> bool:
        """Whether the photo is accepted: there is no reason to refuse it."""
        return not self.reasons

    def to_dict(self) -> dict[str, Any]:
        """Return the result as plain JSON types."""
        return {"accepted": self.accepted, **asdict(self)}


def refused_distortions(policy: GatePolicy) -> dict[str, str]:
    """Return the lowest severity that is refused, by distortion category. Raises ConfigError for unknown words."""
    severities: dict[str, str] = {}
    for word, severity in policy.distortions.items():
        category, least = fold_distortion(word), fold_severity(severity)
        if category is None or least is None or least == SEVERITIES[0]:
            wrong = f"unknown distortion {word!r}" if category is None else f"invalid severity {severity!r} of {word}"
            raise ConfigError(f"distortions: {wrong}; write a distortion and one of {', '.join(SEVERITIES[1:])}")
        severities[category] = least
    if unknown := set(policy.refuse_kinds) - {*KINDS}:
        raise ConfigError(f"refuse_kinds: unknown kind {min(unknown)!r}; use {', '.join(KINDS)}")
    return severities


def gate(policy: GatePolicy, jobs: Sequence[Job], workers: int, assess: Assess) -> Iterator[GateResult]:
    """Yield a result for each photo, in order; ``assess`` yields the row, or an error, of each photo that passes."""
    distortions = refused_distortions(policy)
    with ThreadPoolExecutor(workers) as pool:
        results = pool.map(partial(checked, policy), jobs)
        if not policy.needs_assessment:
            yield from results
            return
        checks = dict(zip(jobs, results, strict=True))
    for job, row in assess([job for job, result in checks.items() if result.accepted]):
        if isinstance(row, Exception):
            checks[job].reasons["undecodable"] = one_line(str(row))
        else:
            add_assessment(policy, distortions, row, checks[job])
    yield from checks.values()


def checked(policy: GatePolicy, job: Job) -> GateResult:
    """Return the result of the checks of file, size and pixels, without an assessment of quality."""
    result = GateResult(one_line(job.name))
    try:
        source = read_source(job.image)
        assert isinstance(source.content, bytes)  # files, stdin and data sets
        image = open_bytes(source.source, source.content)
        width, height = upright_size(image)
        result.measured |= {"width": width, "height": height}
        _check_sides(policy, result)
        tables = getattr(image, "quantization", None)  # the quantization tables of a JPEG
        _reduce(policy, image)
        pixels = decode(source.source, image, MAX_PIXELS).pixels
    except AgenticIQAError as error:
        result.reasons["undecodable"] = one_line(str(error)).removeprefix(f"{result.image}: ")
        return result
    if policy.min_jpeg_quality is not None:
        result.measured["jpeg_quality"] = quality_in(tables)
    longest = max(pixels.shape[:2])
    if policy.min_effective_side is not None:
        result.measured["effective_side"] = effective_side([*map(single_luma, parts_of(pixels))], longest)
    _check_detail(policy, result, longest)
    return result


def checked_row(policy: GatePolicy, row: Mapping[str, Any]) -> GateResult:
    """Return the result of the same checks for the row of an assessed image, by the measurements in it."""
    result = GateResult(one_line(row["image"]))
    if policy.looks_at_files:
        unneeded = [name for name in ("jpeg_quality", "effective_side") if getattr(policy, f"min_{name}") is None]
        result.measured |= {name: row.get(name) for name in MEASURED if name not in unneeded}
        _check_sides(policy, result)
        _check_detail(policy, result, max(row["width"], row["height"]))
    return result


def lacking(policy: GatePolicy, row: Mapping[str, Any]) -> str:
    """Return the first field that a policy needs and the row of an assessed image lacks; empty if there is none."""
    needed = {
        "width": policy.looks_at_files,
        "height": policy.looks_at_files,
        "executor_evidence": bool(policy.distortions),
    }
    return next((name for name, is_needed in needed.items() if is_needed and row.get(name) is None), "")


def add_assessment(
    policy: GatePolicy, distortions: Mapping[str, str], row: Mapping[str, Any], result: GateResult
) -> None:
    """Add the score and findings of an assessment (``row`` is its JSON) to a result."""
    score = row["quality_score"]
    result.measured["score"] = score
    if policy.min_score is not None and (score is None or score < policy.min_score):
        result.reasons["score"] = (
            "it has no score" if score is None else f"score {score:.2f} is below the minimum of {policy.min_score:g}"
        )
    evidence = row.get("executor_evidence") or {}  # a policy without distortions needs none
    for items in (evidence.get("distortion_analysis") or {}).values():
        for item in items:
            least = distortions.get(item["type"])
            if least and SEVERITIES.index(item["severity"]) >= SEVERITIES.index(least):
                text = f"{item['severity']} {everyday_name(item['type'])}: {item['explanation']}"
                result.reasons.setdefault(everyday_name(item["type"]), text)
    kinds = [kind for kind in row.get("outside_training") or () if kind in policy.refuse_kinds]
    if kinds:
        result.reasons["kind"] = f"it does not look like a photo: {', '.join(kinds)}"


def _check_sides(policy: GatePolicy, result: GateResult) -> None:
    width, height = result.measured["width"], result.measured["height"]
    size = f"{width} x {height} pixels"
    if policy.min_short_side and min(width, height) < policy.min_short_side:
        result.reasons["small"] = f"{size}; the shorter side must have at least {policy.min_short_side}"
    if policy.max_long_side and max(width, height) > policy.max_long_side:
        result.reasons["large"] = f"{size}; the longer side may have at most {policy.max_long_side}"
    if policy.aspect and not policy.aspect[0] <= width / height <= policy.aspect[1]:
        low, high = policy.aspect
        result.reasons["aspect"] = f"{size}; width / height is {width / height:.2f}, expected {low:g} to {high:g}"


def _check_detail(policy: GatePolicy, result: GateResult, longest: int) -> None:
    """Check the JPEG quality and the effective side, which for a tiny image is the ``longest`` side as decoded."""
    quality, least = result.measured.get("jpeg_quality"), policy.min_effective_side
    if quality is not None and policy.min_jpeg_quality is not None and quality < policy.min_jpeg_quality:
        result.reasons["compressed"] = f"JPEG quality {quality} is below the minimum of {policy.min_jpeg_quality}"
    if least is None:
        return
    measured = result.measured["effective_side"]
    side = longest if measured is None else measured
    own = max(result.measured["width"], result.measured["height"])
    if side < least and side < ENLARGED * own:
        result.reasons["upscaled"] = (
            f"the longer side has {own} pixels, but only the detail of {side} pixels, below the minimum of {least}"
        )
    elif side < least:
        result.reasons["small"] = f"the longer side of {own} pixels is below the minimum of {least}"


def _reduce(policy: GatePolicy, image: Image.Image) -> None:
    """Let a JPEG be decoded at the smallest size that the checks allow."""
    width, height = image.size
    wanted = MARGIN * policy.min_effective_side if policy.min_effective_side else SMALLEST
    share = min(1.0, wanted / max(width, height))
    image.draft("RGB", (round(share * width), round(share * height)))  # JPEG is decoded at this size or larger
