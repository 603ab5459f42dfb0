"""Measure how memory grows in a run that scores by log-probabilities.

    python benchmarks/memory.py [--images 2000] [--workers 16] [--every 250]

A server on loopback answers each rating with about 300 tokens, each with twenty alternatives, like vLLM. The output has
the memory of this process in MB after every ``--every`` images, and the growth per image after the first block.
"""

import argparse
import json
import math
import os
import tempfile
from pathlib import Path

from throughput import megabytes, picture, server

LEVELS = {"Good": 0.6, "Fair": 0.3, "Excellent": 0.06, "Poor": 0.03, "Bad": 0.01}
WORDS = 280


def rating() -> tuple[str, list[dict[str, object]]]:
    """Return an answer that rates an image, and its tokens with alternatives."""
    logs = {str(number): -2.0 for number in range(1, 6)}
    said = {"quality_level": "Good", "quality_probs": logs, "quality_reasoning": "soft " * WORDS}
    head, _, tail = json.dumps({"assessment": said}).partition("Good")
    return f"{head}Good{tail}", [
        _token(head, {}),
        _token("Good", LEVELS),
        *(_token(f"{w} ", {}) for w in tail.split(" ")),
    ]


def _token(text: str, likely: dict[str, float]) -> dict[str, object]:
    others = {f"other {number}": 1e-6 for number in range(20 - len(likely))}
    top = [{"token": t, "logprob": math.log(p), "bytes": [*t.encode()]} for t, p in {**likely, **others}.items()]
    return {"token": text, "logprob": -0.1, "bytes": [*text.encode()], "top_logprobs": top}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--images", type=int, default=2000)
    parser.add_argument("--workers", type=int, default=16)
    parser.add_argument("--every", type=int, default=250)
    args = parser.parse_args()
    os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"
    with tempfile.TemporaryDirectory() as folder, server(0.0, rating()) as address:
        os.environ["DSPY_CACHEDIR"] = f"{folder}/cache"
        from agenticiqa.configs import Config, StageConfig
        from agenticiqa.programs.assess import AgenticIQA
        from agenticiqa.programs.backends.answer_cache import install
        from agenticiqa.programs.batch.assess_many import assess_many
        from agenticiqa.programs.result import Assessment

        model = StageConfig(backend="vllm.m", api_base=address, max_retries=0, logprobs=True, max_tokens=2048)
        config = Config(summarizer=model)
        install(config)  # as the commands do; DSPy's own cache keeps a million answers in memory
        program = AgenticIQA.from_config(config)
        curve = [megabytes()]
        for begin in range(0, args.images, args.every):
            files = [Path(folder) / f"{number}.jpg" for number in range(begin, begin + args.every)]
            for number, file in enumerate(files, begin):
                file.write_bytes(picture(number, 20_000))
            for job, outcome in assess_many(program, files, args.workers, Assessment.to_dict):
                if isinstance(outcome, Exception):
                    raise outcome
                assert outcome["probability_source"] == "logprobs", job
            curve.append(megabytes())
            print(f"{begin + args.every:6d} images {curve[-1]:7.1f} MB", flush=True)
        grown = (curve[-1] - curve[1]) / max(1, args.images - args.every)
        kept = sum(file.stat().st_size for file in Path(folder, "cache").rglob("*") if file.is_file())
        print(f"{grown * 1000:.1f} KB per image after the first {args.every}")
        print(f"{kept / args.images / 1000:.1f} KB per image in the cache on disk")


if __name__ == "__main__":
    main()
