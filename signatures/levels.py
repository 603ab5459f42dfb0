"""The question of models that were trained to name a quality level."""

import dspy


class NameLevel(dspy.Signature):
    """How would you rate the quality of this image?"""

    image: dspy.Image = dspy.InputField(desc="the image to be judged")
    word: str = dspy.OutputField(desc="the word that continues the answer")
