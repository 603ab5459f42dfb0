"""The offline stages: a small network parses questions, images are measured, and no language model is used.

``stages`` has one class for each stage of the program, ``reference`` checks a pair before that. ``measured`` is about
images: features and named measurements, networks and curves over them, findings, damage in a part, and the predicted
mean opinion score. ``answers`` is about questions: it plans them and answers them from what was measured.
"""
