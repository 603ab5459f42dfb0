"""The offline stages: a small network parses questions, images are measured, and no language model is used.

``stages`` has one class for each stage of the program; ``reference`` checks a pair before the stages run. ``measured``
interprets the measurements of ``programs.tools``: networks and curves over them, findings, local damage, and the
predicted MOS. ``answers`` plans questions and answers them from the measurements.
"""
