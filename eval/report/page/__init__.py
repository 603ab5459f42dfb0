"""Make the HTML page of runs: read their folders, draw charts with matplotlib, and fill templates."""
