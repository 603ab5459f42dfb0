"""Measure an image: from pixels to the severity of each category of distortion, and to a predicted MOS.

``features`` (numbers for the networks) and ``tools.statistics`` (named measurements), ``detector`` (the networks),
``curves`` (severities by the measurements), ``findings`` (what both combine to),
``distortions`` (all of it for one image), ``opinion`` (severities to a predicted mean opinion score). Where it is bad:
``patches`` (a network for each patch of an image), ``local_damage`` (patches to regions).
"""
