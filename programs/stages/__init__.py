"""The stages that ask a model, and what they share: the typed seam, the rules of a plan, evidence and fusion."""
