"""Statistics of an image that several metrics and the detector of distortions use."""
