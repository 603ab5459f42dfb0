"""Draw an assessment as a PNG."""
