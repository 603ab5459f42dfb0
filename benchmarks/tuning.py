"""Measure how often ``optimize`` keeps a prompt without an effect, and a useful one, with a simulated rater.

``python benchmarks/tuning.py`` prints two rows for prompts that are given to the decision, and two for whole searches:
with sentences that have no effect, and with useful ones among others. A simulation has 160 noisy labels, 64 of them
held out. The SRCC is that of the rater with the true quality of 400 unseen photos, without and with the prompt that is
saved.
"""

import argparse
import sys
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests"))

from support.simulated_judge import SEED  # noqa: E402
from support.tuning_decisions import ANY, IDLE, USEFUL, Tuning, true_srcc  # noqa: E402

FIRST_SEED = 10_000
GIVEN = {"a prompt without an effect": f"{SEED} Wording {{}}.", "a useful prompt": f"{USEFUL} {{}}"}
SEARCHED = {"a search without useful sentences": IDLE, "a search with useful sentences": ANY}


def saved_prompt(case: str, run: Tuning) -> tuple[bool, str]:
    """Return whether there was a new prompt, and the prompt that is saved."""
    if case in GIVEN:
        text, seen = GIVEN[case].format(run.seed), run.first
    else:
        found = run.search(SEARCHED[case])
        text, seen = found.best["s"], found.seen
    return text != SEED, text if text != SEED and run.kept(text, seen) else SEED


def main() -> None:
    """Run the simulations and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--simulations", type=int, default=100)
    seeds = range(FIRST_SEED, FIRST_SEED + parser.parse_args().simulations)
    print("| case | found | kept | SRCC before | SRCC of the saved prompt | worst change |\n|---|---|---|---|---|---|")
    before = np.array([true_srcc(SEED, seed) for seed in seeds])
    for case in (*GIVEN, *SEARCHED):
        found, saved = zip(*(saved_prompt(case, Tuning(seed)) for seed in seeds), strict=True)
        after = np.array([true_srcc(text, seed) for text, seed in zip(saved, seeds, strict=True)])
        kept = sum(text != SEED for text in saved)
        figures = f"{before.mean():.3f} | {after.mean():.3f} | {(after - before).min():+.3f}"
        print(f"| {case} | {sum(found)} | {kept} | {figures} |", flush=True)


if __name__ == "__main__":
    main()
