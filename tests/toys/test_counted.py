"""The algorithm that counts its sweeps, compared with the heatbath."""

import numpy as np

from gauge_mc.run.generate import generate

RUN = {"group": "su2", "beta": 2.4, "lattice": "4x4x4x4", "configs": 2, "separation": 1}
RUN |= {"thermalize": 1, "precision": "single", "threads": 1, "progress": False}


def test_it_is_the_heatbath_with_a_table_of_its_sweeps(tmp_path):
    run = generate(**RUN, algorithm="counted", rounds=2, output=tmp_path / "run")
    heat = generate(**RUN, heatbath=2, overrelax=0, output=tmp_path / "heat")
    np.testing.assert_array_equal(run["plaquette"]["spatial"], heat["plaquette"]["spatial"])
    np.testing.assert_array_equal(run["counted"]["sweeps_done"], [4, 6])
