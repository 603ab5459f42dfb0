"""The program with a part left out, measured beside the whole one on the same images."""
