"""``python -m agenticiqa``: the command line."""

import sys

from agenticiqa.eval.cli import main

if __name__ == "__main__":
    sys.exit(main())
