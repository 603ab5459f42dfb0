"""``agenticiqa cite``: print BibTeX entries of the paper and the program, with the facts of ``CITATION.cff``."""

from importlib import metadata

from agenticiqa.configs.options import Arguments
from agenticiqa.programs.cli.status import OK

BIBTEX = """\
% the method
@misc{zhu2025agenticiqa,
  title = {{AgenticIQA}: An Agentic Framework for Adaptive and Interpretable Image Quality Assessment},
  author = {Zhu, Hanwei and Tian, Yu and Ding, Keyan and Chen, Baoliang and Chen, Bolin and Wang, Shiqi and Lin, Weisi},
  year = {2025},
  eprint = {2509.26006},
  archivePrefix = {arXiv},
  url = {https://arxiv.org/abs/2509.26006}
}

% this program, an independent implementation, for results that you computed with it
@software{agenticiqa_program,
  title = {{AgenticIQA}},
  author = {{The contributors of this AgenticIQA implementation}},
  version = {VERSION},
  license = {Apache-2.0}
}
"""


def run(args: Arguments) -> int:
    """Print the entries."""
    print(BIBTEX.replace("VERSION", metadata.version("agenticiqa")), end="")
    return OK
