"""The fit of the mean link trace, compared with NumPy."""

import json

import numpy as np
import pytest

from gauge_mc.files.table import write_table
from gauge_mc.fits import fit
from gauge_mc.fits.files import read_fit


def test_it_is_the_mean_of_the_column(rng, tmp_path):
    values = rng.normal(0.3, 0.01, 400)
    write_table(tmp_path / "some.csv", {}, ("sweep", "trace"), enumerate(values, 1))
    found = fit("mean-trace", tmp_path).mean
    assert found.value == pytest.approx(values.mean())
    assert found.error == pytest.approx(values.std() / np.sqrt(400), rel=0.3)
    written = json.loads((tmp_path / "mean-trace.json").read_text())
    assert written["mean"]["value"] == written["result"][0]["value"] == found.value
    assert read_fit(tmp_path / "mean-trace.json")["mean"] == found
