"""Files of modes that are kept in a folder."""

import pytest

from gauge_mc.domain.lattice import Lattice
from gauge_mc.errors import UnreadableError
from gauge_mc.extensions.quarks.modes.mode_files import ModePath
from gauge_mc.fields.field import Field
from tests.calls import forbid


def test_only_damaged_modes_are_computed_again(tmp_path, monkeypatch, capsys):
    """The modes in a file that must not be read may have taken hours."""
    field = Field.cold(Lattice(2, 2, 2, 2), "su3", "double")
    modes = ModePath(tmp_path, {"modes": "kernel"})
    modes.write(field, {"values": [1.5, 2.5]}, None)
    assert modes.read(field).numbers == {"values": [1.5, 2.5]}
    (path,) = tmp_path.iterdir()
    with monkeypatch.context() as refusing:
        forbid(refusing, path)
        with pytest.raises(UnreadableError, match="Permission denied"):
            modes.read(field)
    assert capsys.readouterr().err == ""
    path.write_bytes(path.read_bytes()[:-9])
    assert modes.read(field) is None
    assert "is damaged" in capsys.readouterr().err
