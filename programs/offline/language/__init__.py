"""Questions read, and answered from measurements, without a model."""
