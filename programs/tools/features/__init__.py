"""What the offline findings and networks are given: the statistics by name, and the features of images and patches."""
