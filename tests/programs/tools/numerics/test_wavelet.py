"""The wavelet transform loses nothing by itself."""

import numpy as np
import pytest

from agenticiqa.programs.tools.numerics.wavelet import coarsen


@pytest.mark.parametrize("size", [(1, 1), (2, 3), (7, 9), (33, 64)])
def test_nothing_is_lost_where_every_packet_arrives(size):
    values = np.random.default_rng(0).uniform(0, 255, (*size, 3))
    assert np.allclose(coarsen(values, 0, np.random.default_rng(0)), values)
