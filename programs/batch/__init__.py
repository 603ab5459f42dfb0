"""Assess many images: in parallel, with a results file and a cost limit."""
