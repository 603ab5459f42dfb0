"""Plan and answer questions about an image from its measurements, without a language model.

``planner`` plans a question. ``answer`` answers it: by ``fixed_words``, which has a rule for each kind of question that
its words give away; else ``question_reader``, a small network, says what is asked, about what and of which part, and
``asked`` adds what the words say exactly: hue, degree, place, scale. ``answer.ANSWERS`` has a small function for each
kind of question, those of ``rules`` and ``places``, which answer it from the findings (``measured_image``, ``parts``);
``choices`` chooses among options. What the network is not sure of, and what does not follow from the measurements, is
not answered.
"""
