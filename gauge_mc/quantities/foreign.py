"""Series of openQCD, MILC and tmLQCD as tables: the gradient flow, and histories of trajectories.

All of these are programs for SU(3). Their topological charges are those of
`GradientFlowObservable` up to the sign: openQCD and tmLQCD have the order t, x, y, z of the
directions.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import ClassVar

import numpy as np

from gauge_mc.arrays import Array
from gauge_mc.domain.lattice import Lattice
from gauge_mc.errors import UnsupportedError, UsageError
from gauge_mc.files.columns import SWEEP
from gauge_mc.files.foreign import FOREIGN_SERIES, LEFT_OUT, ForeignSeries, ForeignTable
from gauge_mc.flows import WilsonFlow
from gauge_mc.groups import special_unitary
from gauge_mc.quantities.flow.curves import CHARGES, FLOW_KIND, WHOLE
from gauge_mc.quantities.flow.observable import GradientFlowObservable
from gauge_mc.quantities.plaquette import Plaquette

COLOURS = 3
"""Number of colours in all of these programs."""

GROUP = special_unitary(COLOURS)
"""Name of their group."""

CHARGE = CHARGES["clover"]
"""Column of the topological charge that they measure."""


def flow_table(
    kind: str, lattice: str, sweeps: Sequence[int], t: Array, left_out: str, **values: Array
) -> ForeignTable:
    """Return a table of the gradient flow."""
    header = {
        "observable": GradientFlowObservable.name,
        "group": GROUP,
        "lattice": str(Lattice.parse(lattice)),
    }
    columns = {
        SWEEP: np.repeat(np.asarray(sweeps, np.int64), t.size),
        "t": np.tile(t, len(sweeps)),
        "slice": np.full(len(sweeps) * t.size, WHOLE),
        **{name: value.ravel() for name, value in values.items()},
    }
    return ForeignTable({**header, FLOW_KIND: kind, LEFT_OUT: left_out}, columns)


OPENQCD_HEAD = np.dtype([("dn", "<i4"), ("nn", "<i4"), ("tmax", "<i4"), ("eps", "<f8")])
"""Beginning of openQCD's files: steps between measurements, their number, T, and the step."""


class OpenQcdFlow(ForeignSeries):
    """Files ``*.ms3.dat`` of the program ms3 and ``*.ms.dat`` of its hybrid Monte Carlo.

    After `OPENQCD_HEAD` each configuration has its number, and the sums over the space of every
    time slice of the plaquette energy, the clover energy and the charge, for each flow time
    (openQCD, ``main/README.ms3``, ``modules/uflds/plaq_sum.c``, ``modules/tcharge``).
    """

    name: ClassVar[str] = "openqcd-flow"
    program: ClassVar[str] = "openQCD"
    needs_lattice: ClassVar[bool] = True

    def recognises(self, data: bytes) -> bool:
        """Return whether the head and ascending numbers say so; see `ForeignSeries`."""
        if len(data) < OPENQCD_HEAD.itemsize:
            return False
        dn, nn, tmax, eps = np.frombuffer(data, OPENQCD_HEAD, 1)[0].tolist()
        if not (0 < dn < 2**16 and 0 < nn < 2**16 and 1 < tmax < 2**12 and 1e-6 < eps < 10):
            return False
        numbers = self._records(data)["number"]
        return bool(numbers.size and numbers[0] >= 0 and (np.diff(numbers) > 0).all())

    def read(self, files: Mapping[int, bytes], lattice: str) -> ForeignTable:
        """Return the averages over the lattice of whole records; see `ForeignSeries.read`."""
        (data,) = files.values()
        dn, nn, tmax, eps = np.frombuffer(data, OPENQCD_HEAD, 1)[0].tolist()
        extents, records = Lattice.parse(lattice), self._records(data)
        if extents.t != tmax:
            raise UsageError(f"The file has T = {tmax}, but --lattice is {extents}; correct it.")
        plaquette, clover, charge = np.moveaxis(records["sums"], 1, 0)
        if not clover[..., 0].any():
            raise UnsupportedError(
                "The lattice has boundaries in time, where E is 0, so that averages over it are "
                "not those of the bulk; only periodic lattices are supported."
            )
        rest = (len(data) - OPENQCD_HEAD.itemsize) % records.itemsize
        return flow_table(
            WilsonFlow.name,
            lattice,
            records["number"].tolist(),
            np.arange(nn + 1) * (dn * eps),
            f"The last record is incomplete ({rest} bytes) and was left out." if rest else "",
            energy_plaquette=plaquette.sum(axis=-1) / extents.sites,
            energy_clover=clover.sum(axis=-1) / extents.sites,
            **{CHARGE: -charge.sum(axis=-1)},
        )

    def _records(self, data: bytes) -> np.ndarray:
        """Return the whole records."""
        _, nn, tmax, _ = np.frombuffer(data, OPENQCD_HEAD, 1)[0].tolist()
        record = np.dtype([("number", "<i4"), ("sums", "<f8", (3, nn + 1, tmax))])
        count = (len(data) - OPENQCD_HEAD.itemsize) // record.itemsize
        return np.frombuffer(data, record, count, OPENQCD_HEAD.itemsize)


MILC_LABEL = b"\n#LABEL time "
"""Beginning of the flow of a configuration."""

MILC_LINE = re.compile(rb"^(?:WFLOW|GFLOW:) (.*)\n", re.MULTILINE)
"""Lines of the flow: time, energies in temporal and spatial planes, charge. As GFLOW, also the
averages of Re Tr of plaquettes, and of rectangles, in both kinds of planes before the charge."""

MILC_NUMBER = re.compile(rb"^reload_\S+ \S*?[._](\d+)(?:\.[A-Za-z]\w*)?$", re.MULTILINE)
"""Line that names the file of a configuration, with its number."""

MILC_STATED = re.compile(rb"^(?:n[xyzt] \d+|anisotropy .*|set staple to \S+)$", re.MULTILINE)
"""Lines with the extents, the anisotropy if there is one, and the flow."""


class MilcFlow(ForeignSeries):
    """Standard output of the program wilson_flow, of one job or of several, one after the other.

    The numbers of configurations are those in the names of their files, or 1, 2, … if these have
    none (MILC, ``wilson_flow/control.c``, ``integrate.c`` and ``fmunu.c``).
    """

    name: ClassVar[str] = "milc-flow"
    program: ClassVar[str] = "MILC"

    def recognises(self, data: bytes) -> bool:
        """Return whether it has the label and lines of the flow; see `ForeignSeries`."""
        return MILC_LABEL in data and MILC_LINE.search(data) is not None

    def read(self, files: Mapping[int, bytes], lattice: str) -> ForeignTable:
        """Return the flow times that all configurations have; see `ForeignSeries.read`."""
        (data,) = files.values()
        start, *chunks = data.split(MILC_LABEL)
        complete = [b"\nNumber of steps" in chunk for chunk in chunks]
        count = sum(complete)
        if not count or not all(complete[:count]):
            raise UnsupportedError("A flow before the last one is incomplete; remove its lines.")
        flows = [
            np.array([line.split() for line in MILC_LINE.findall(x)], float) for x in chunks[:count]
        ]
        shortest = min(map(len, flows))  # the program may choose the last flow time
        values = np.stack([flow[:shortest] for flow in flows])
        t, energies, plaquettes = values[0, :, 0], values[:, :, 1:3], values[:, :, 3:5]
        stated = [line.decode().split()[-1] for line in dict.fromkeys(MILC_STATED.findall(data))]
        if len(stated) != 5 or (values[:, :, 0] != t).any():
            raise UnsupportedError(
                "The configurations do not have the same extents, flow and flow times, or the flow "
                "is anisotropic; only equal isotropic flows are supported."
            )
        names = [MILC_NUMBER.findall(chunk)[-1:] for chunk in (start, *chunks[: count - 1])]
        numbers = [int(number) for name in names for number in name]
        more = {"energy_plaquette": 6 * (2 * COLOURS - plaquettes.sum(-1))}
        return flow_table(
            stated[4],
            "x".join(stated[:4]),
            numbers if len({*numbers}) == count else range(1, count + 1),
            t,
            "" if complete[-1] else "The last flow is incomplete and was left out.",
            energy_clover=energies.sum(-1),
            **{CHARGE: values[:, :, -1]},
            **(more if values.shape[-1] > 4 else {}),
        )


class TmlqcdFlow(ForeignSeries):
    """Files ``gradflow.NUMBER`` of tmLQCD's online measurement (``meas/gradient_flow.c``)."""

    name: ClassVar[str] = "tmlqcd-flow"
    program: ClassVar[str] = "tmLQCD"
    needs_lattice: ClassVar[bool] = True
    separate: ClassVar[bool] = True

    def recognises(self, data: bytes) -> bool:
        """Return whether it begins with the names of the columns; see `ForeignSeries`."""
        return data.startswith(b"traj t P Eplaq Esym tsqEplaq tsqEsym Wsym Qsym\n")

    def read(self, files: Mapping[int, bytes], lattice: str) -> ForeignTable:
        """Return the flow of all configurations; see `ForeignSeries.read`."""
        flows = [[line.split() for line in data.split(b"\n")[1:-1]] for data in files.values()]
        left_out = len(flows) > 1 and len(flows[-1]) < len(flows[0])
        values = np.array(flows[: len(flows) - left_out], float)
        return flow_table(
            WilsonFlow.name,
            lattice,
            values[:, 0, 0].astype(int).tolist(),
            values[0, :, 1],
            "The last file is incomplete and was left out." if left_out else "",
            energy_plaquette=values[:, :, 3],
            energy_clover=values[:, :, 4],
            **{CHARGE: -values[:, :, 8]},
        )


class TmlqcdHistory(ForeignSeries):
    """Files ``output.data`` of tmLQCD with a line for each trajectory (``update_tm.c``).

    It has the number, the plaquette, dH, exp(-dH), two counts of iterations for each monomial,
    whether it was accepted, the time, and the rectangle if the action has one.
    """

    name: ClassVar[str] = "tmlqcd-history"
    program: ClassVar[str] = "tmLQCD"

    def recognises(self, data: bytes) -> bool:
        """Return whether the first line has this form; see `ForeignSeries`."""
        real = rb"-?\d\.\d+"
        line = rb"\d{8} +%b +-?\d+\.\d{12} %be\S+ (?:\d+ \d+ )*[01] %be\S+(?: %be\S+)?\n"
        return re.match(line % (real, real, real, real), data) is not None

    def read(self, files: Mapping[int, bytes], lattice: str) -> ForeignTable:
        """Return the whole lines; see `ForeignSeries.read`."""
        lines = files[0].split(b"\n")
        values = np.array([line.split() for line in lines[:-1]], float)
        accepted = -2 - values.shape[1] % 2  # there are pairs of numbers apart from a rectangle
        header = {"observable": "trajectories", "group": GROUP}
        header[LEFT_OUT] = "The last line is incomplete and was left out." if lines[-1] else ""
        columns = {SWEEP: values[:, 0].astype(np.int64), Plaquette.name: values[:, 1]}
        return ForeignTable(
            header, {**columns, "delta_h": values[:, 2], "accepted": values[:, accepted]}
        )


for kind in (OpenQcdFlow(), MilcFlow(), TmlqcdFlow(), TmlqcdHistory()):
    FOREIGN_SERIES.register(kind)
