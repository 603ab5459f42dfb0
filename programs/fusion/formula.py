"""Fuse tool scores with a model's probabilities over the five quality levels (paper, Sec. 3.3).

``equations`` has the paper's equations 1 to 4. ``ScoreFusion`` computes them as long as no error of the tools or of the
model is given. ``ScoreFusion.refined_score`` also takes these errors into account, and equals them without errors.
"""

import logging
import math
from collections.abc import Mapping, Sequence
from copy import copy
from types import NoneType
from typing import Any, Literal, Self, TypeVar

from agenticiqa.configs import FusionConfig
from agenticiqa.configs.bounds import LEAST_ERROR
from agenticiqa.programs.fusion.equations import mean_tool_score, perceptual_weights, score_of, softmax
from agenticiqa.programs.fusion.profile import FusionProfile, NormalAnswer
from agenticiqa.programs.images.files import digest, source_digest
from agenticiqa.signatures.answers.level_in_words import level_named
from agenticiqa.signatures.vocabulary import LETTERS, LEVELS, Level

logger = logging.getLogger(__name__)

Probabilities = dict[int, float]
N = TypeVar("N", bound=float)
Source = Literal["quality_probs", "reasoning", "uniform"]

SMOOTHED = 0.7
# Each level from 1 to 5 is the middle of an interval; together they span 0.5 to 5.5.
FINE_LEVELS = tuple(0.5 + step / 8 for step in range(41))
OFFLINE_ETA, OFFLINE_MODEL_ERROR = 2.0, 3.0
SMALLEST_SHARE = 1e-300  # a smaller probability of a level is 0, because its products underflow
UNDECIDED = 1e-9  # probabilities that differ by less are equal
JSON = (str, float, int, list, dict, NoneType)


class ScoreFusion:
    """The rule that fuses tool scores with a model's probabilities over the quality levels.

    With the default arguments, this is equations 1 to 4 of the paper (``fusion.equations``). Without a tool score, the
    mean and deviation of the MOS in the profile replace it.

    Args:
        eta: ``1 / (2 sigma^2)`` of Bayes' rule; sigma is the standard deviation of the tools' error in levels.
        quality_levels: The levels, from the worst to the best.
        model_error: The standard deviation of the model's error in levels. Above 0, ``p_c`` is replaced by a Gaussian
            of this deviation around the model's expected level. A confident model then has no more influence than its
            error allows. Equal probabilities carry no information and stay equal. 0 is the paper's formula.
        profile: Provides both errors instead of ``eta`` and ``model_error``, and maps the expected level to the scale.
            If some of the model's answers do not assess their image, ``p_c`` is a mixture of two Gaussians.
        plain_mean: Whether every tool that was executed counts equally in the mean (equation 1), also one that
            measures a single property. Otherwise, and with a profile, tools that the question names or a model selects
            count equally if they measure quality, and tools that the program chooses are weighted.

    Raises:
        ValueError: ``eta`` or ``model_error`` is negative or not finite.
    """

    def __init__(
        self,
        eta: float = 1.0,
        quality_levels: Sequence[int] = (1, 2, 3, 4, 5),
        *,
        model_error: float = 0.0,
        profile: FusionProfile | None = None,
        plain_mean: bool = True,
    ) -> None:
        for name, value in (("eta", eta), ("model_error", model_error)):
            if not (math.isfinite(value) and value >= 0):
                raise ValueError(f"{name} must be a finite number of at least 0, got {value}")
        self.profile = profile
        self.eta = eta_of(profile.tool_error) if profile else eta
        self.model_error = profile.model_error if profile else model_error
        self.quality_levels = tuple(quality_levels)
        self.plain_mean = plain_mean and profile is None

    def with_profile(self, profile: FusionProfile | None) -> Self:
        """Return this fusion with the errors of a profile instead of its own; a rule keeps its other parameters.

        Args:
            profile: The profile; ``None`` for ``eta`` 1 and the model's own probabilities.

        Returns:
            A new fusion.
        """
        changed = copy(self)
        errors = ScoreFusion(quality_levels=self.quality_levels, profile=profile)
        vars(changed).update(vars(errors))
        return changed

    @property
    def settings(self) -> dict[str, Any]:
        """The rule and all its parameters for the description of a run, as JSON types."""
        kind = type(self)
        rule = kind.__qualname__ if kind is ScoreFusion else f"{kind.__qualname__} {source_digest(kind)}"
        parameters = {name: value if isinstance(value, JSON) else repr(value) for name, value in vars(self).items()}
        profile = digest(self.profile.model_dump(mode="json")) if self.profile else None
        return {"rule": rule, **parameters, "profile": profile}

    def compute_perceptual_weights(self, tool_scores: Sequence[float]) -> Probabilities:
        """Compute the weight of each level for tool scores.

        Args:
            tool_scores: Scores in [1, 5].

        Returns:
            The weights by level; they sum to one and are uniform without scores.

        Raises:
            ValueError: A score is NaN, infinite or outside the scale.
        """
        return softmax(self._closeness(tool_scores, self.quality_levels))

    def extract_vlm_probabilities(self, vlm_output: Mapping[str, Any] | str) -> Probabilities:
        """Read a model's probabilities over the levels.

        First choice is the softmax of the log-probabilities under ``quality_probs``, then the level in the reasoning
        (0.7 for it, the rest shared), then uniform. The last two log a warning.

        Args:
            vlm_output: The model's JSON answer or its text.

        Returns:
            The probabilities by level; they sum to one.

        Raises:
            ValueError: ``quality_probs`` has other levels.
        """
        return self.probabilities_and_source(vlm_output)[0]

    def probabilities_and_source(self, vlm_output: Mapping[str, Any] | str) -> tuple[Probabilities, Source]:
        """Return the probabilities of :meth:`extract_vlm_probabilities` with their source.

        Args:
            vlm_output: The model's JSON answer or its text.

        Returns:
            The probabilities by level, and "quality_probs", "reasoning" or "uniform".

        Raises:
            ValueError: ``quality_probs`` has other levels.
        """
        if isinstance(vlm_output, Mapping) and vlm_output.get("quality_probs"):
            logs = {int(level): float(log) for level, log in vlm_output["quality_probs"].items()}
            if set(logs) != set(self.quality_levels):
                raise ValueError(f"quality_probs has the levels {sorted(logs)}, expected {list(self.quality_levels)}")
            return softmax(logs), "quality_probs"
        text = vlm_output if isinstance(vlm_output, str) else str(vlm_output.get("quality_reasoning", ""))
        level = level_named(text)
        if level is not None:
            logger.warning("no quality_probs: level %d is read from the reasoning, so the score is approximate", level)
            return self.smoothed(level), "reasoning"
        logger.warning("no quality_probs and no level in the reasoning: the score is based on the tool scores only")
        return dict.fromkeys(self.quality_levels, 1 / len(self.quality_levels)), "uniform"

    def smoothed(self, level: int) -> Probabilities:
        """Return the probabilities for a single stated level.

        Args:
            level: The level.

        Returns:
            The probabilities by level: 0.7 for this one, the rest shared by the others.
        """
        rest = (1 - SMOOTHED) / (len(self.quality_levels) - 1)
        return {c: SMOOTHED if c == level else rest for c in self.quality_levels}

    def fuse_scores(
        self, tool_scores: Sequence[float], vlm_probabilities: Mapping[int, float], *, tool_error: float | None = None
    ) -> float:
        """Fuse tool scores and a model's probabilities into one score.

        The score rises with every tool score and with the model's expectation. The exception is a fitted profile with a
        model far from the tools: the model's answer is then unlikely to assess the image, and the score returns to the
        tools.

        Args:
            tool_scores: Scores in [1, 5]. Without any and without a profile, the score is the expectation under
                ``vlm_probabilities``, regardless of ``model_error``.
            vlm_probabilities: The model's probabilities by level; they sum to one.
            tool_error: The standard deviation, in levels, that the tools report for this image. Scaled by the profile,
                it replaces ``eta``.

        Returns:
            The score in [1, 5], higher is better.

        Raises:
            ValueError: A tool score is outside [1, 5], ``tool_error`` is not positive, or the probabilities are not a
                distribution over the levels.
        """
        if set(vlm_probabilities) != set(self.quality_levels):
            raise ValueError(f"got probabilities of levels {sorted(vlm_probabilities)}, expected {self.quality_levels}")
        values = vlm_probabilities.values()
        if not all(math.isfinite(p) and p >= 0 for p in values) or not math.isclose(math.fsum(values), 1, abs_tol=1e-6):
            raise ValueError(f"probabilities must be at least 0 and sum to 1, got {dict(vlm_probabilities)}")
        if self.profile is None and self.model_error == 0 and tool_error is None:
            p = {c: share for c, share in vlm_probabilities.items() if share > SMALLEST_SHARE}
            q_bar, eta = self._tool_estimate(tool_scores)
            fused = score_of(perceptual_weights(q_bar, eta, [*p]), p)
        else:
            fused = self.refined_score(tool_scores, vlm_probabilities, tool_error=tool_error)
        return min(max(fused, float(self.quality_levels[0])), float(self.quality_levels[-1]))

    def refined_score(
        self, tool_scores: Sequence[float], vlm_probabilities: Mapping[int, float], *, tool_error: float | None = None
    ) -> float:
        """Compute equation 4 in logarithms, with the errors of the tools and of the model.

        Without a profile and without errors, this is the score of the paper.

        Args:
            tool_scores: Scores in [1, 5].
            vlm_probabilities: The model's probabilities by level; they sum to one.
            tool_error: As in :meth:`fuse_scores`.

        Returns:
            The score in [1, 5], up to rounding.

        Raises:
            ValueError: A tool score is outside [1, 5], or ``tool_error`` is not positive.
        """
        # With a profile both are Gaussian; if the errors are small, a sum over five levels would be rounded to a level.
        levels = FINE_LEVELS if self.profile else self.quality_levels
        closeness = self._closeness(tool_scores, levels, tool_error)
        model_log_likelihood = self.log_likelihood(vlm_probabilities, levels, alone=not tool_scores)
        # In logarithms, so that a large eta does not underflow for every level.
        joint = softmax({c: closeness[c] + log for c, log in model_log_likelihood.items()})
        return math.fsum(share * c for c, share in joint.items())

    def fuse(self, tool_scores: Sequence[float], vlm_probabilities: Mapping[int, float]) -> float:
        """Return :meth:`fuse_scores` of the arguments; the specification has both names.

        Args:
            tool_scores: Scores in [1, 5].
            vlm_probabilities: The model's probabilities by level.

        Returns:
            The score in [1, 5].
        """
        return self.fuse_scores(tool_scores, vlm_probabilities)

    def log_likelihood(
        self, vlm_probabilities: Mapping[int, float], levels: Sequence[float], *, alone: bool = False
    ) -> dict[float, float]:
        """Compute the log-likelihood of the model's probabilities for each level.

        Args:
            vlm_probabilities: The model's probabilities by level.
            levels: The levels, also fractional ones with a ``model_error`` or profile.
            alone: Whether there is no tool score. Every answer then counts as an assessment, and without a profile the
                probabilities are used unchanged.

        Returns:
            The log-likelihood by level, up to a constant; impossible levels are omitted.
        """
        if max(vlm_probabilities.values()) - min(vlm_probabilities.values()) < UNDECIDED:
            return dict.fromkeys(levels, 0.0)
        if self.model_error == 0 or (alone and self.profile is None):
            return {level: math.log(share) for level, share in vlm_probabilities.items() if share > 0}
        place = self.place(expected_level(vlm_probabilities))
        answers = [NormalAnswer(1.0, place, self.model_error)]
        if self.profile and not alone:
            answers = self.profile.answers(place)
        return {level: _log_sum([_log_density(level, answer) for answer in answers]) for level in levels}

    def place(self, expectation: float) -> float:
        """Map the model's expected level to the scale by the profile.

        Args:
            expectation: The expected level, in [1, 5].

        Returns:
            The place on the scale; without a profile the expectation itself.
        """
        return self.profile.mapped(expectation) if self.profile else expectation

    def map_to_level(self, score: float) -> str:
        """Return the letter of the level nearest to a score.

        Args:
            score: A score in [1, 5].

        Returns:
            A (Excellent) to E (Bad); the better one half-way.

        Raises:
            ValueError: The score is outside [1, 5].
        """
        return LETTERS[level_name(score)]

    def _closeness(
        self, tool_scores: Sequence[float], levels: Sequence[N], tool_error: float | None = None
    ) -> dict[N, float]:
        """Return each level's log-weight, up to a constant: -eta times the squared distance from the mean."""
        q_bar, eta = self._tool_estimate(tool_scores, tool_error)
        return {level: -eta * (q_bar - level) ** 2 for level in levels}

    def _tool_estimate(self, tool_scores: Sequence[float], tool_error: float | None = None) -> tuple[float, float]:
        """Return the mean of the tool scores with its eta; without any, the profile's, or eta 0."""
        low, high = self.quality_levels[0], self.quality_levels[-1]
        for score in tool_scores:
            if not (math.isfinite(score) and low <= score <= high):
                raise ValueError(f"a tool score must lie in [{low}, {high}], got {score}")
        if tool_error is not None and not (math.isfinite(tool_error) and tool_error > 0):
            raise ValueError(f"tool_error must be a finite number of levels above 0, got {tool_error}")
        if tool_scores:
            error = self.profile.tool_error_of(tool_error) if self.profile else tool_error
            return mean_tool_score(tool_scores), self.eta if error is None else eta_of(error)
        if self.profile:
            return self.profile.quality_mean, eta_of(self.profile.quality_std)
        return low, 0.0


BY_DEFAULT = FusionConfig()


def default_fusion(section: FusionConfig = BY_DEFAULT) -> ScoreFusion:
    """Return the fusion without a profile, with the parameters that a section sets."""
    eta = 1.0 if section.eta is None else section.eta
    return ScoreFusion(eta, model_error=section.model_error or 0.0, plain_mean=section.mean == "plain")


def offline_fusion(section: FusionConfig = BY_DEFAULT) -> ScoreFusion:
    """Return the offline fusion, where level probabilities and tool scores come from the same measurements."""
    if not section.has_errors:
        section = section.with_errors(FusionConfig(eta=OFFLINE_ETA, model_error=OFFLINE_MODEL_ERROR))
    return default_fusion(section)


def _log_density(level: float, answer: NormalAnswer) -> float:
    """Return the logarithm of an answer's share times its density at a level, up to a constant."""
    error = max(answer.error, LEAST_ERROR)
    return math.log(answer.share / error) - 0.5 * ((answer.place - level) / error) ** 2


def _log_sum(logs: Sequence[float]) -> float:
    peak = max(logs)
    return peak + math.log(math.fsum(math.exp(log - peak) for log in logs))


def expected_level(probabilities: Mapping[int, float]) -> float:
    """Return the mean level under a model's probabilities by level."""
    return math.fsum(level * share for level, share in probabilities.items())


def eta_of(error: float) -> float:
    """Return the paper's eta for an error of this standard deviation, in levels."""
    return 1 / (2 * error**2)


def interval_text(ends: Mapping[Any, Sequence[float]] | None) -> str:
    """Return the 80 % interval of the MOS as text; empty if a row has none."""
    low, high = (ends or {}).get("80") or (0, 0)
    return f"80 % interval: {low:.1f} to {high:.1f}" if low < high else ""


def level_name(score: float) -> Level:
    """Return the name of the level nearest to a score in [1, 5]; the better one if the score is halfway."""
    if not 1 <= score <= 5:
        raise ValueError(f"a score must lie in [1, 5], got {score}")
    nearest = math.floor(score + 0.5)
    return next(name for name, number in LEVELS.items() if number == nearest)
