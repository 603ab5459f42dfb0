"""Names of 0.1.0 that still work."""

import agenticiqa
from agenticiqa.programs.fusion.profile import PRIOR, FusionProfile


def test_names_of_the_first_version_are_accepted() -> None:
    assert agenticiqa.judge_many is agenticiqa.assess_many  # type: ignore[attr-defined]
    old = PRIOR.model_dump(exclude={"image_kind", "unrelated_answers"}) | {"judged_as": "photo", "not_judging": 0.1}
    profile = FusionProfile.model_validate(old)
    assert (profile.image_kind, profile.unrelated_answers) == ("photo", 0.1)
