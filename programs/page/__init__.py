"""HTML pages that need no network: their style and thumbnails, the contact sheet and the comparison."""
