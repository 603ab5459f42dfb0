"""An assessment as a picture."""
