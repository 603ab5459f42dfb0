"""The trained networks on images outside of the training set, and their invariants."""

from pathlib import Path

import numpy as np
import pytest

from agenticiqa.eval.datasets import LabeledImage
from agenticiqa.eval.labels.own_data import read_labels
from agenticiqa.eval.research.detector_figures import ALARM, srcc_with_strength
from agenticiqa.eval.research.distort import distort
from agenticiqa.programs import images
from agenticiqa.programs.errors import ToolError
from agenticiqa.programs.offline.measured import detector
from agenticiqa.programs.offline.measured.detector import (
    HEADS,
    SUBTYPES,
    predict,
    severities_from_outputs,
)
from agenticiqa.programs.offline.measured.distortions import findings_of
from agenticiqa.programs.offline.measured.findings import NETWORK_SHARE, Prediction
from agenticiqa.programs.tools.features.image_features import MIN_SIDE, features
from agenticiqa.signatures.categories import BLURS, COMPRESSION, NOISE
from agenticiqa.signatures.vocabulary import DETECTABLE, TRAINED
from support.distortion_levels import scene
from support.images import loaded

# Categories by the names in LIVE's labels. Lost packets of JPEG 2000 are coding artifacts that mostly look blurred.
RIGHT_OF_LIVE = {
    "gaussian-blur": (BLURS,),
    "jp2k-fast-fading": (COMPRESSION, BLURS),
    "jpeg": (COMPRESSION,),
    "white-noise": (NOISE,),
}
FOLLOWED = ("motion_blur", "chroma_noise", "webp", "banding", "low_contrast")


def predicted(image: images.LoadedImage, reference: images.LoadedImage | None = None) -> dict[str, Prediction]:
    own = features(image)
    if reference is None:
        return predict(texture=own.texture, tone=own.tone)
    return predict(compared=own.all - features(reference).all)


def vector(image: images.LoadedImage, reference: images.LoadedImage | None = None) -> np.ndarray:
    found = findings_of(image, reference)
    return np.array([found[name].severity for name in DETECTABLE])


@pytest.fixture(scope="module")
def live(shared_data: Path) -> list[LabeledImage]:
    return read_labels(shared_data / "live_r2" / "labels.csv")


@pytest.fixture(scope="module")
def pristine(live: list[LabeledImage]) -> dict[Path, images.LoadedImage]:
    return {path: images.load(path) for path in {item.reference for item in live if item.reference}}


@pytest.fixture(scope="module")
def distorted(live: list[LabeledImage]) -> list[images.LoadedImage]:
    return [images.load(item.image) for item in live]


# LIVE release 2 was not used for training. Its mildest images hardly differ from their references.
@pytest.mark.slow
@pytest.mark.parametrize("referenced", [False, True])
def test_the_worst_category_of_a_live_image_is_mostly_correct(live, distorted, pristine, referenced):
    hits = []
    for item, image in zip(live, distorted, strict=True):
        severities = vector(image, pristine[item.reference] if referenced else None)
        hits.append(DETECTABLE[int(severities.argmax())] in RIGHT_OF_LIVE[str(item.distortion)])
    assert np.mean(hits) >= (0.9 if referenced else 0.82), sum(hits)


def test_pristine_photos_of_live_have_no_visible_distortion(pristine):
    for path, image in pristine.items():
        assert vector(image).max() < ALARM, path.name


@pytest.mark.slow
@pytest.mark.parametrize("kind", FOLLOWED)
def test_severity_rises_with_the_level_on_an_unknown_photo(pristine, kind):
    for referenced in (False, True):
        agreements = []
        for path in sorted(pristine):
            crop = np.ascontiguousarray(pristine[path].pixels[60:316, 100:484])
            steps = [loaded(distort(crop, kind, level)) for level in (0, 1, 3, 5)]
            assessed = [vector(step, steps[0] if referenced else None) for step in steps]
            agreements.append(srcc_with_strength(kind, [0, 1, 3, 5], np.array(assessed)))
        assert np.mean(agreements) >= 0.85, (referenced, agreements)


def test_every_trained_category_has_a_head_a_network_share_and_subtypes():
    assert [*SUBTYPES] == [*NETWORK_SHARE] == [*HEADS["compared"]] == [*TRAINED]
    assert {*HEADS["texture"], *HEADS["tone"]} == set(TRAINED) <= set(DETECTABLE)
    assert all(0 < share <= 1 for share in NETWORK_SHARE.values())
    assert predicted(loaded(scene())) == predicted(loaded(scene()))


def test_predictions_have_a_severity_and_one_for_each_subtype():
    for predictions in (predicted(loaded(scene())), predicted(loaded(scene()), loaded(scene(seed=1)))):
        assert {*predictions} == {*TRAINED}
        for name in TRAINED:
            assert tuple(predictions[name].subtypes) == SUBTYPES[name]
            assert all(
                0 <= severity <= 4 for severity in (predictions[name].severity, *predictions[name].subtypes.values())
            )


def test_no_change_is_predicted_between_an_image_and_its_copy():
    predictions = predicted(loaded(scene()), loaded(scene()))
    assert all(one.severity == 0 and not any(one.subtypes.values()) for one in predictions.values())


def test_an_image_too_small_for_the_networks_is_assessed_by_the_curves():
    small = loaded(scene(MIN_SIDE - 1, 200))
    assert tuple(findings_of(small)) == tuple(findings_of(small, small)) == DETECTABLE


def test_severities_have_the_order_of_the_outputs_and_are_0_to_4():
    outputs = np.linspace(-3, 7, 200)
    severities = severities_from_outputs(outputs)
    assert np.all(np.diff(severities) >= 0)
    assert severities.min() >= 0
    assert severities.max() <= 4
    assert severities[(outputs > 1) & (outputs < 3)] == pytest.approx(outputs[(outputs > 1) & (outputs < 3)], abs=0.01)


def test_damaged_weights_are_refused_by_name(monkeypatch, tmp_path):
    damaged = tmp_path / "detector.npz"
    damaged.write_bytes(detector.WEIGHTS.read_bytes()[:-1] + b"x")
    monkeypatch.setattr(detector, "WEIGHTS", damaged)
    with pytest.raises(ToolError, match=r"detector\.npz"):
        predicted(loaded(scene()))
