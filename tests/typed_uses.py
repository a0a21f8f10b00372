"""Uses of the functions of Python that a type checker accepts or refuses; nobody runs them."""

from typing import Any, assert_type

import numpy as np

import gauge_mc

parameters = gauge_mc.Parameters(lattice=(8, 8, 8, 16), beta=2.5, group="su2", action="iwasaki")
gauge_mc.generate(lattice=(4, 4, 4, 8), beta=2.3, group="su2", configs=3)
gauge_mc.generate(algorithm="hmc", quarks=[{"kappa": 0.12}], steps=5)
gauge_mc.measure("run", "mesons", kappa=[0.12, 0.13])
gauge_mc.scan(anisotropy=[1.0, 2.0], beta="2.3:2.5:0.1")
gauge_mc.fit("potential", "run", t_min=3)
gauge_mc.plot("flow", "run")
gauge_mc.bench(group="su3")

gauge_mc.Parameters(lattice=8.5)  # type: ignore[arg-type]
gauge_mc.generate(latice="4x4x4x4")  # type: ignore[call-arg]
gauge_mc.generate(beta="strong")  # type: ignore[arg-type]
gauge_mc.measure("run", "flow", kapa=3)  # type: ignore[call-arg]
gauge_mc.scan(configs="many")  # type: ignore[arg-type]
gauge_mc.fit("potential", "run", t_least=3)  # type: ignore[call-arg]

run = gauge_mc.generate(lattice="4x4x4x8", observables=[(lambda field: 1.0, 10)])
assert_type(run.averages["plaquette"].value, float)
field = gauge_mc.Field.hot(gauge_mc.Lattice(4, 4, 4, 8), "su3", precision="double", seed=1)
assert_type(field.to_numpy(), np.ndarray[tuple[Any, ...], np.dtype[np.complex128]])
