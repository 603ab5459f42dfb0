"""Measure an image: from pixels to the severity of each category of distortion, and to a predicted MOS.

``features`` computes the inputs of the networks in ``detector``, ``tools.statistics`` the named measurements that
``curves`` maps to severities. ``findings`` combines both, ``distortions`` runs all of it for one image, and
``mos_estimate`` maps severities to a predicted MOS. For local damage, ``patches`` runs a network on each patch of an
image, and ``local_damage`` joins patches to regions.
"""
