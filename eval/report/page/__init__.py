"""The HTML page of runs: read from their folders, drawn with Bokeh, filled into templates."""
