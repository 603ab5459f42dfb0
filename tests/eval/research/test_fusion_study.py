"""The fusion study: its tools and models are what they are called, and it finds the gain that is there."""

import csv
from pathlib import Path

import numpy as np
import pytest

from agenticiqa.eval.metrics import srcc
from agenticiqa.eval.research.fusion_study import (
    BEST_TOOL,
    LEVEL_VALUES,
    degraded,
    from_logits,
    halves,
    main,
    measured,
    normal_scores,
    real_vlms,
    reported,
    simulated_vlms,
    tool_cases,
)

pytestmark = pytest.mark.slow

N = 240
DRAW = np.random.default_rng(1)
QUALITY = np.clip(3.2 + 0.8 * DRAW.standard_normal(N), 1, 5)
TOOLS = {
    BEST_TOOL: np.clip(3.2 + 0.65 * (QUALITY - 3.2) + 0.35 * DRAW.standard_normal(N), 1, 5),
    "NIQE": np.clip(3.2 + 0.3 * (QUALITY - 3.2) + 0.4 * DRAW.standard_normal(N), 1, 5),
}
EVERY = np.arange(N)


def rank(a: np.ndarray, b: np.ndarray = QUALITY) -> float:
    return srcc(a, b) or 0.0


def test_a_degraded_tool_has_the_srcc_that_was_asked_for() -> None:
    for target in (0.3, 0.5, 0.68):
        assert rank(degraded(TOOLS[BEST_TOOL], QUALITY, target)) == pytest.approx(target, abs=0.005)


def test_simulated_models_have_their_correlation_and_share_the_tools_error() -> None:
    truth, tool = normal_scores(QUALITY), normal_scores(TOOLS[BEST_TOOL])
    own = tool - np.polyval(np.polyfit(truth, tool, 1), truth)
    vlms = simulated_vlms(TOOLS[BEST_TOOL], QUALITY)
    assert len(vlms) == 10
    for vlm in vlms:
        _, correlation, _, shared = vlm.name.replace(",", "").split()
        answer = normal_scores(vlm.probabilities @ LEVEL_VALUES)
        error = answer - np.polyval(np.polyfit(truth, answer, 1), truth)
        assert np.corrcoef(answer, truth)[0, 1] == pytest.approx(float(correlation), abs=0.03)
        assert np.corrcoef(error, own)[0, 1] == pytest.approx(float(shared), abs=0.06)


def test_a_margin_of_zero_is_fair_and_a_great_one_excellent() -> None:
    p = from_logits(np.array([0.0, 12.0, -12.0]))
    assert p @ LEVEL_VALUES == pytest.approx([3, 5, 1], abs=0.01)
    assert p.sum(axis=1) == pytest.approx(np.ones(3))


def test_what_is_chosen_on_is_not_what_is_reported() -> None:
    choosing, reporting = halves([str(place) for place in range(N)])
    assert not set(choosing) & set(reporting)
    assert len(choosing) + len(reporting) == N
    prompts = [str(place // 3) for place in range(N)]
    first, second = ({prompts[place] for place in half} for half in halves(prompts))
    assert len(first) + len(second) == len(set(prompts))
    vlms = simulated_vlms(TOOLS[BEST_TOOL], QUALITY)
    names = {vlm.name for vlm in reported(vlms)}
    assert len(names) == len(vlms) / 2
    assert {name.split(",")[1] for name in names} == {vlm.name.split(",")[1] for vlm in vlms}


def test_a_profile_gains_beside_a_good_model_and_loses_little_beside_a_bad_one() -> None:
    case = next(case for case in tool_cases(TOOLS, QUALITY) if case.scores is TOOLS[BEST_TOOL])
    chance = real_vlms({"chance": 2 * DRAW.standard_normal(N)})[0]
    good = next(vlm for vlm in simulated_vlms(case.scores, QUALITY) if "0.8, errors 0" in vlm.name)
    for vlm in (good, chance):
        found = measured(case, vlm, QUALITY, EVERY, EVERY)
        assert found.gains["best in hindsight"] >= found.gains["profile"] - 0.005
        assert found.gains["profile"] == found.gains["profile, other images"]
        assert found.gains["profile"] > (0.02 if vlm is good else -0.03)
        assert 0.6 < found.covered["profile", "80"] < found.covered["profile", "95"] <= 1
    assert measured(case, chance, QUALITY, EVERY, EVERY).gains["paper"] < -0.05


def test_the_command_prints_every_tool_and_the_coverage(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    names = [f"{place}.png" for place in range(60)]
    margins = 2 * (QUALITY[:60] - 3) + DRAW.standard_normal(60)
    columns = {
        "labels.csv": {"mos": QUALITY[:60]},
        "margins.csv": {"a": margins, "b": -margins},
        "tools.csv": {name: scores[:60] for name, scores in TOOLS.items()},
    }
    for file, content in columns.items():
        with (tmp_path / file).open("w", newline="") as out:
            writer = csv.writer(out)
            writer.writerow(["image", *content])
            writer.writerows(zip(names, *content.values(), strict=True))
    for name in names:
        (tmp_path / name).touch()
    files = [str(tmp_path / file) for file in columns]
    assert main([*files, "--mos-range", "1", "5"]) == 0
    text = capsys.readouterr().out
    assert "30 images" in text
    assert all(name in text for name in ("LEARNED-IQA + noise, 0.5", "NIQE", "| all |", "prior, 95 %"))
    assert main([*files, "--mos-range", "1", "5", "--generated"]) == 0
    generated = capsys.readouterr().out
    assert "12 VLMs" in generated
    assert "| VLM | alone |" in generated
    assert main([str(tmp_path / "missing.csv"), *files[1:]]) == 2
