"""The prompts of the stages that ask a language model, and the types that stages exchange.

``docs/fidelity.md`` compares them with the paper, clause by clause.
"""

OVERALL = "Overall"  # quality as a whole, in place of a category; here, so that a single metric loads no table for it
