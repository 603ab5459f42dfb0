"""HTML pages that open from disk without a network: their style, their thumbnails, and the contact sheet of a run."""
