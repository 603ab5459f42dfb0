"""The fusion study: its tools and models are what their names say, and a profile gains beside a good model."""

import numpy as np
import pytest

from agenticiqa.eval.metrics import srcc
from agenticiqa.eval.research.adapter_figures import RatedImages
from agenticiqa.eval.research.fusion_study import (
    LEARNED,
    LEVEL_VALUES,
    NIQE,
    SHARPNESS,
    WAYS,
    measured,
    normal_scores,
    real_vlms,
    report,
    second_half,
    simulated_vlms,
    tool_cases,
    two_tools,
)

pytestmark = pytest.mark.slow

N = 160
DRAW = np.random.default_rng(1)


def images(count: int) -> RatedImages:
    """Return images with a MOS that 240 features predict."""
    features = DRAW.standard_normal((count, 240)).astype(np.float32)
    mos = np.clip(3.2 + 0.25 * features[:, :10].sum(axis=1), 1, 5)
    content = np.array([str(number // 2) for number in range(count)])
    return RatedImages(features, mos, mos, content, np.array([""] * count))


def test_the_study_measures_what_it_says() -> None:
    here, others = images(N), [images(400)]
    weak = {name: np.clip(3 + 0.2 * (here.mos - 3) + 0.3 * DRAW.standard_normal(N), 1, 5) for name in (NIQE, SHARPNESS)}
    cases = tool_cases(here, others, weak)
    assert [case.name for case in cases][2:] == [LEARNED, f"{LEARNED}, other sets", NIQE]
    for case, aim in zip(cases, (0.5, 0.68), strict=False):
        assert srcc(case.scores, here.mos) == pytest.approx(aim, abs=0.01)
    plain, weighted = two_tools(cases[2], cases[4], here.mos)
    assert plain.scores == pytest.approx((cases[2].scores + cases[4].scores) / 2)
    assert abs(weighted.scores - cases[2].scores).max() < abs(plain.scores - cases[2].scores).max()

    vlms = simulated_vlms(cases[2].scores, here.mos)
    for vlm, correlation in zip(vlms[::2], (0.6, 0.7, 0.8, 0.9, 0.95), strict=True):
        answer = normal_scores(vlm.probabilities @ LEVEL_VALUES)
        assert np.corrcoef(answer, normal_scores(here.mos))[0, 1] == pytest.approx(correlation, abs=0.04)
    chance = real_vlms({"chance": 3 * DRAW.standard_normal(N)})[0]
    found = [measured(cases[0], vlm, here.mos, np.arange(N)) for vlm in (vlms[6], chance)]
    assert found[0].gains["hindsight"] >= found[0].gains["profile"] - 0.01 > -0.01
    assert found[1].gains["default"] < found[1].gains["profile"] - 0.05
    assert 0.5 < found[0].covered["default", "80"] < found[0].covered["default", "95"] <= 1
    lines = report([*found])
    assert [line for line in lines if line.startswith("| all | 2 pairs |")]
    assert sum(line.startswith(WAYS) for line in lines) == 3


def test_only_one_half_of_the_contents_is_measured() -> None:
    contents = [str(number // 3) for number in range(60)]
    rows = second_half(contents)
    assert len(rows) == 30
    assert not {contents[row] for row in rows} & {contents[row] for row in range(60) if row not in rows}
