"""Plan and answer questions about an image from its measurements, without a language model.

``planner`` plans a question and ``answer`` answers it. ``fixed_words`` has a rule for each kind of question that can be
recognized by fixed words. For others, ``question_reader``, a small network, predicts the intent, the distortion and the
part of the image, and ``asked`` adds what the words state exactly: hue, degree, place, scale. ``answer.ANSWERS`` has a
function for each intent, from ``rules`` or ``places``, which answers from the findings (``measured_image``, ``parts``);
``choices`` chooses among options. A question is not answered if the network is unsure or the measurements do not
determine the answer.
"""
