"""Answer questions about an image from its measurements, without a language model.

``question_reader``, a small network, says what is asked, about what and of which part; ``asked`` adds what the words
say exactly: hue, degree, place, scale. ``table`` has a small function for each kind of question that answers it from
the findings (``measured_image``), ``places`` those for "where", ``choices`` those for options. ``answer`` puts them
together, and ``own_words`` answers what needs no measurement.
What the network is not sure of, and what does not follow from the measurements, is undetermined.
"""
