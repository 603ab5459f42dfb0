"""Read questions by rules, plan for them, and answer them from measurements, without a language model.

Words. ``signatures.lexicon`` has every word for a distortion, with its category and its meaning in a question; models'
answers are read with the same lexicon. ``word_lists`` has all other words: degrees, levels, region nouns, fillers.
``spelling`` corrects misspelled words to these.

Reading. ``reader`` makes a ``Question`` (``question``) of a query: what is asked, of which subject, about what
(``claims``), and how sure that is. ``scope``, with ``region_phrases`` (noun phrases) and ``tokens`` (words and
distortion phrases), finds the parts of the image that it names, ``tool_names`` the tools. ``planner`` makes the plan
from the same. ``question_reader``, a small network, reads what is asked and about what in any wording. Where it is
sure, the question is asked again in words that the rules know (``plain_question``), unless these understood more of it
(``second_reading``); options in words of their own are chosen by what it reads in them (``free_options``).

Answering, called by the answerer stage. ``answers`` looks at the subject of the question and chooses a rule by what is
asked: ``yes_no`` (does the claim hold), ``comparisons`` (with the reference, or of two parts), ``places`` (where),
``choices`` with ``scale_options`` (options on one scale: the nearest) and ``distortion_options`` (options that name
distortions: the worst), ``text_questions`` (which metric needs a reference, what a quoted query names, the verdict of a
score that is given: no picture answers these), and by itself degrees, lists, ratings and values of metrics. Every rule
asks ``measured_image``, the findings about one image or part in the terms of a question, and returns a verdict
(``verdicts``): an answer, or why there is none.
"""
