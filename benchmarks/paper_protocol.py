"""Measure what each setting of ``--config paper`` changes, with a simulated model.

``python benchmarks/paper_protocol.py live_r2/labels.csv --out runs`` prints the table of docs/fidelity.md. The
simulated model knows the distortion of each image, selects the tool with the highest correlation in its prompt, and
rates the MOS with an error; so it says nothing of a real model's plans.
"""

import argparse
import csv
import hashlib
import json
import random
import re
import sys
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests"))

from agenticiqa.eval.cli import main  # noqa: E402
from support.fake_server import by_stage, fake_server, field_of, images_of  # noqa: E402
from support.loopback import Body, Reply  # noqa: E402
from support.scripted_answers import SCRIPT, pairs, plan, rated_at  # noqa: E402

ERROR = 0.8  # levels, the standard deviation of the simulated model's error
CATEGORIES = {"jp": "Compression", "blur": "Blurs", "noise": "Noise"}  # by a part of the label's distortion
RUNS: dict[str, dict[str, Any]] = {
    "default": {},
    "select-model": {"executor": {"select": "model"}},
    "fusion-paper": {"fusion": "paper"},
    "table5": {"tool_curves": "table5"},
    "letter": {"summarizer": {"rating": "letter"}},
}


class Model:
    """A script for the loopback server that knows distortion and MOS of each image by the digest of its file."""

    def __init__(self, labels: Path) -> None:
        with open(labels, encoding="utf-8") as file:
            rows = list(csv.DictReader(file))
        worst, best = (pick(float(row["mos"]) for row in rows) for pick in (min, max))
        self.known: dict[str, tuple[str, float]] = {}
        for row in rows:
            level = 1 + 4 * (float(row["mos"]) - worst) / (best - worst)
            level += random.Random(row["image"]).gauss(0, ERROR)
            digest = hashlib.sha256((labels.parent / row["image"]).read_bytes()).hexdigest()
            self.known[digest] = row.get("distortion") or "noise", min(max(level, 1.0), 5.0)
        self.answers = by_stage(
            {
                **SCRIPT,
                "plan": plan(reference_mode="Full-Reference"),
                "detection": self.detect,
                "selection": select,
                "assessment": self.assess,
            }
        )

    def __call__(self, request: Body) -> Any:
        """Return the answer to a request."""
        return self.answers(request)

    def _of(self, request: Body) -> tuple[str, float]:
        return next(
            self.known[digest]
            for _, data in images_of(request)
            if (digest := hashlib.sha256(data).hexdigest()) in self.known
        )

    def detect(self, request: Body) -> Any:
        """Return the category of the image's distortion."""
        kind = self._of(request)[0]
        category = next(name for part, name in CATEGORIES.items() if part in kind)
        return {"distortion_set": [{"region": "Global", "distortions": [category]}]}

    def assess(self, request: Body) -> Reply:
        """Return a level or a letter, as requested, with log-probabilities around the rated level."""
        by_letter = "final_answer" in json.dumps(request["response_format"])
        return rated_at(self._of(request)[1], by_letter=by_letter)


def select(request: Body) -> Any:
    """Select for each distortion the tool with the highest correlation that the prompt lists for it, or for Overall."""
    tools = field_of(request, "available_tools").splitlines()

    def figure(line: str, name: str) -> float:
        found = re.search(rf"{name} (\.\d+|\d\.\d+)", line)
        return float(found[1]) if found else -1.0

    rows = []
    for region, distortion in pairs(request):
        best = max(tools, key=lambda line: (figure(line, distortion), figure(line, "Overall")))
        rows.append({"region": region, "distortion": distortion, "tool": best.partition(" ")[0]})
    return {"selected_tools": rows}


def run(labels: Path, out: Path) -> None:
    """Evaluate each configuration, and compare all in pairs."""
    out.mkdir(parents=True, exist_ok=True)
    with fake_server(Model(labels)) as server:
        common = {"backend": "vllm.simulated", "api_base": server.url, "cache": False}
        for name, settings in RUNS.items():
            config = out / f"{name}.yaml"
            config.write_text(yaml.safe_dump({**common, **settings}))
            main(["evaluate", str(labels), "--config", str(config), "--out", str(out / name)])
        model = ["--backend", "vllm.simulated", "--api-base", server.url, "--no-cache"]
        main(["evaluate", str(labels), "--config", "paper", *model, "--out", str(out / "paper")])
    main(["compare", *(str(out / name) for name in (*RUNS, "paper")), "--markdown", "-"])


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("labels", type=Path, help="images with reference, mos and distortion")
    parser.add_argument("--out", type=Path, required=True, help="the folder of the runs")
    given = parser.parse_args()
    run(given.labels, given.out)
