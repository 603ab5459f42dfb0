"""The HTML page of runs: read from their folders, drawn with matplotlib, filled into templates."""
