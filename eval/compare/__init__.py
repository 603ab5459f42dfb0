"""Compare runs of ``agenticiqa evaluate``: differences on the images of both, corrected for how many are made."""
