"""What several metrics and the detector of distortions measure."""
