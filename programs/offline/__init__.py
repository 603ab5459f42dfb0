"""The offline stages: questions are read by a small network, images are measured, and no language model is asked.

Image to severities: ``features`` (numbers for the networks) and ``tools.statistics`` (named measurements), ``detector``
(the networks), ``no_reference`` and ``full_reference`` (curves over the measurements), ``findings`` (what both combine
to), ``distortions`` (all of it for one image), ``by_region`` (for the regions of an image), ``opinion`` (severities to
a predicted mean opinion score). Where it is bad: ``patch_features``, ``patches`` (networks for each patch of an image),
``local_damage`` (patches to regions). Questions: ``plan`` and ``answers``. ``stages`` has one class for each stage of
the program.
"""
