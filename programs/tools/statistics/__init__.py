"""Statistics of an image that several metrics, the features, the gate or the check for photos use."""
