"""The wavelet transform loses nothing by itself."""

import numpy as np
import pytest

from agenticiqa.eval.research.wavelet import coarsen


@pytest.mark.parametrize("size", [(1, 1), (2, 3), (7, 9), (33, 64)])
def test_nothing_is_lost_where_every_packet_arrives(size):
    values = np.random.default_rng(0).uniform(0, 255, (*size, 3))
    assert np.allclose(coarsen(values, 0, np.random.default_rng(0)), values)


@pytest.mark.parametrize(("period", "least", "most"), [(32, 0, 0.3), (512, 0.95, 1)])
def test_with_every_block_hit_only_the_longest_faint_waves_remain(period, least, most):
    """The coarsest of the five scales, which always arrives, has a value every 32 pixels."""
    wave = 3 * np.sin(2 * np.pi * np.arange(512) / period + 0.4)
    values = 100 + np.repeat((wave[:, None] + wave)[..., None], 3, axis=2)
    left = coarsen(values, 1, np.random.default_rng(0))
    assert least <= np.corrcoef(left.ravel(), values.ravel())[0, 1] * left.std() / values.std() <= most


def test_what_is_lost_at_one_share_is_lost_at_every_greater_one():
    values = np.random.default_rng(1).uniform(0, 255, (512, 512, 3))
    errors = [
        np.square(coarsen(values, share, np.random.default_rng(0)) - values).mean() for share in (0.1, 0.3, 0.6, 1)
    ]
    assert 0 < errors[0] < errors[1] < errors[2] < errors[3]
