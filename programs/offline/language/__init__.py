"""Read questions by rules, plan for them, and answer them from measurements, without a language model.

Words. ``signatures.lexicon`` has every word for a distortion, with its category and its meaning in a question; models'
answers are read with the same lexicon. ``word_lists`` has all other words: degrees, levels, region nouns, fillers.

Planning, called by the planner stage. ``planner`` makes the plan from: ``tool_names`` (the tools that the question
names), ``scope`` (its regions, and which distortions it names for which of them), which uses ``region_phrases`` (noun
phrases) and ``tokens`` (words and distortion phrases), and from whether it is about image quality at all.

Answering, called by the answerer stage. ``answers`` strips what does not matter and hands the question on: with options
to ``choices``, otherwise to ``open_answers``. Both read it with ``clauses`` (one clause or one option as a claim: of
what, how much, negated or not) and choose a rule by its form:
``yes_no`` (does the claim hold), ``comparisons`` (with the reference), ``scale_options`` (options on one scale: the
nearest), ``distortion_options`` (options that name distortions: the worst). Every rule asks ``measured_image``, the
findings in the terms of a question, and returns a verdict (``verdicts``): an answer, or why there is none. A question
with words that no list has is not answered.

The question is divided twice, on purpose: ``yes_no`` splits a claim at every conjunction, ``scope`` only where both
sides name a region and a distortion.
"""
