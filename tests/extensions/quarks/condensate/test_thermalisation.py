"""`--skip auto` for tables of condensates."""

from gauge_mc.extensions.quarks.condensate.observable import COLUMNS
from gauge_mc.files.table import read_table, write_table
from gauge_mc.run.thermalisation import series_of


def test_columns_of_rounding_do_not_count(tmp_path):
    """Those that are 0 in exact arithmetic have a transient as often as not."""
    rows = [(n, 0.1, 0.0, source, *[1.0] * 6) for n in range(5) for source in range(2)]
    names = ("sweep", *(one.name for one in COLUMNS if not one.optional))
    write_table(tmp_path / "condensate.csv", {"observable": "condensate"}, names, rows)
    found = series_of(read_table(tmp_path / "condensate.csv"))
    judged = {name.removeprefix("mean ").partition(",")[0] for name, *_ in found}
    assert judged == {"scalar", "pseudoscalar", "connected", "pion"}
