"""Measure and tune the program: labeled data sets, benchmark, calibration, prompts, training, studies."""
