"""Interpret measurements: the severity of each category of distortion, and a predicted MOS.

``programs.tools`` measures the pixels. ``detector`` has the networks for ``tools.features.image_features``, and
``curves`` maps the measurements of ``tools.features.by_name`` to severities. ``findings`` combines both,
``distortions`` runs all of it for one image, and ``mos_estimate`` maps severities to a predicted MOS. For local damage,
``patches`` runs a network on each patch of an image, and ``local_damage`` joins patches to regions.
"""
