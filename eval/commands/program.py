"""The program that a command measures."""

from argparse import Namespace

from agenticiqa.configs import Config
from agenticiqa.programs.assess import AgenticIQA
from agenticiqa.programs.backends.limits import Limits
from agenticiqa.programs.cli.probing import prepare


def tuned_program(args: Namespace, config: Config, limits: Limits) -> AgenticIQA:
    """The configured program, with the tuned prompts of --prompts; its models are probed first."""
    prepare(config, limits)
    program = AgenticIQA.from_config(config)
    if args.prompts:
        program.load(args.prompts)
    return program
