"""Plaquette, staples, action, Polyakov and Wilson loops. Loops are Re Tr / N (Polyakov: Tr / N)."""

from collections.abc import Callable, Iterable, Sequence
from itertools import permutations, product
from typing import NamedTuple

import numpy as np

from .fields import Complex, Real, dagger, shift, trace

Step = tuple[int, int, int]
"""One step of a spatial path, (dx, dy, dz)."""

Loop = tuple[tuple[tuple[int, int], ...], float]
"""A closed path of (direction, +1 or -1) from every site, and the factor of its loops."""


class Plaquette(NamedTuple):
    """Averages over all planes, over the three spatial and over the three temporal ones."""

    mean: float
    spatial: float
    temporal: float


def plaquette_matrix(links: Complex, mu: int, nu: int) -> Complex:
    """U_mu(x) U_nu(x + mu) U_mu(x + nu)^dagger U_nu(x)^dagger at every site x."""
    u, v = links[..., mu, :, :], links[..., nu, :, :]
    return u @ shift(v, mu) @ dagger(shift(u, nu)) @ dagger(v)


def plaquette_field(links: Complex, mu: int, nu: int) -> Real:
    """Re Tr / N of the plaquettes of one plane, ``p[t, z, y, x]``."""
    return trace(plaquette_matrix(links, mu, nu)).real / int(links.shape[-1])


def plaquette(links: Complex) -> Plaquette:
    """Average plaquettes."""
    spatial = np.mean([plaquette_field(links, mu, nu) for mu, nu in ((0, 1), (0, 2), (1, 2))])
    temporal = np.mean([plaquette_field(links, mu, 3) for mu in range(3)])
    return Plaquette(float(spatial + temporal) / 2, float(spatial), float(temporal))


def action(links: Complex, beta: float) -> float:
    """Wilson action beta sum_plaquettes (1 - Re Tr / N) (Wilson, Phys. Rev. D10 (1974) 2445)."""
    sites = int(np.prod(links.shape[:4]))
    return beta * 6 * sites * (1 - plaquette(links).mean)


def staple(links: Complex, mu: int, directions: Iterable[int] = range(4)) -> Complex:
    """Sum A of the staples, such that the plaquettes through U_mu(x) add up to Tr(U_mu(x) A(x)).

    A = sum over nu != mu in `directions` of
    U_nu(x+mu) U_mu(x+nu)^dagger U_nu(x)^dagger
    + U_nu(x+mu-nu)^dagger U_mu(x-nu)^dagger U_nu(x-nu).
    """
    u = links[..., mu, :, :]
    total = np.zeros_like(u)
    for nu in directions:
        if nu == mu:
            continue
        v = links[..., nu, :, :]
        total += shift(v, mu) @ dagger(shift(u, nu)) @ dagger(v)
        total += shift(dagger(shift(v, mu)) @ dagger(u) @ v, nu, -1)
    return total


def translate(field: Complex, offset: Sequence[int]) -> Complex:
    """f(x + offset) at every site x, `offset` along x, y, z (, t)."""
    for mu, steps in enumerate(offset):
        if steps:
            field = shift(field, mu, steps)
    return field


def transport(links: Complex, path: Iterable[tuple[int, int]]) -> Complex:
    """Product of the links along `path`, a sequence of (direction, +1 or -1), from every site."""
    result = np.broadcast_to(np.eye(links.shape[-1], dtype=complex), links[..., 0, :, :].shape)
    position = [0, 0, 0, 0]
    for mu, sign in path:
        if sign > 0:
            result = result @ translate(links[..., mu, :, :], position)
        position[mu] += sign
        if sign < 0:
            result = result @ dagger(translate(links[..., mu, :, :], position))
    return result


def loop_staple(links: Complex, mu: int, loops: Iterable[Loop]) -> Complex:
    """Sum of the staples of any loops, in the convention of `staple`.

    A loop is followed in both senses. Each link of direction mu that is passed forwards has a
    staple, the rest of the loop, which begins where the link ends.
    """
    total = np.zeros_like(links[..., mu, :, :])
    for path, factor in loops:
        back = tuple((nu, -sign) for nu, sign in reversed(path))
        for way in (path, back):
            for n, step in enumerate(way):
                if step == (mu, 1):
                    total += factor * shift(transport(links, way[n + 1 :] + way[:n]), mu)
    return total


def loop_action(links: Complex, loops: Iterable[Loop]) -> float:
    """Sum over loops of their factors times 1 - Re Tr / N."""
    n = links.shape[-1]
    return sum(c * (1 - trace(transport(links, path)).real / n).sum() for path, c in loops)


def polyakov_field(links: Complex) -> Complex:
    """Tr / N of the ordered product of temporal links over one period, ``P[z, y, x]``."""
    period = links.shape[0]
    traces: Complex = trace(transport(links, [(3, 1)] * period))[0]
    return traces / int(links.shape[-1])


def polyakov_loop(links: Complex) -> complex:
    """Average of `polyakov_field` over space."""
    return complex(polyakov_field(links).mean())


def field_correlator(links: Complex, fields: Sequence[Complex], tau: int) -> complex:
    """Sum over fields F of the averages of Tr [F(x) W(x, tau) F(y) W(y, N_t - tau)] / N.

    y is tau steps along t from x, and W(x, n) the product of the n links along t from x on.
    """
    period = links.shape[0]
    first = transport(links, [(3, 1)] * tau)
    second = translate(transport(links, [(3, 1)] * (period - tau)), (0, 0, 0, tau))
    sums = [trace(one @ first @ translate(one, (0, 0, 0, tau)) @ second).mean() for one in fields]
    return complex(sum(sums)) / int(links.shape[-1])


def shortest_paths(step: Step) -> list[tuple[tuple[int, int], ...]]:
    """All shortest link paths from x to x + step: every distinct order of its unit steps.

    One for (1,0,0), two for (1,1,0), three for (2,1,0) (xxy, xyx, yxx), six for (1,1,1).
    """
    units = [(mu, 1 if n > 0 else -1) for mu, n in enumerate(step) for _ in range(abs(n))]
    return sorted(set(permutations(units)))


Paths = Callable[[Step], Sequence[tuple[tuple[int, int], ...]]]
"""The paths over which the line of a step is averaged."""


def blocks_21(step: Step) -> list[tuple[tuple[int, int], ...]]:
    """The two paths along a permutation of (2,1,0) that keep both links of length 2 together."""
    (two,) = [(mu, n // 2) for mu, n in enumerate(step) if abs(n) == 2]
    (one,) = [(mu, n) for mu, n in enumerate(step) if abs(n) == 1]
    return [(two, two, one), (one, two, two)]


def step_transporter(links: Complex, step: Step, along: Paths = shortest_paths) -> Complex:
    """Transporter from x to x + step: plain average over paths, not projected."""
    paths = along(step)
    total = np.zeros_like(links[..., 0, :, :])
    for path in paths:
        total += transport(links, path)
    return total / len(paths)


def spatial_transporter(
    links: Complex, step: Step, r: int, along: Paths = shortest_paths
) -> Complex:
    """Transporter over r equal steps: the ordered product of r step transporters."""
    one = step_transporter(links, step, along)
    result = one
    for i in range(1, r):
        result = result @ translate(one, [i * n for n in step])
    return result


def wilson_loop(
    links: Complex,
    step: Step,
    r: int,
    t: int,
    upper: Complex | None = None,
    along: Paths = shortest_paths,
    every: int = 1,
) -> float:
    """W of spatial separation r * step and temporal extent t, averaged over all sites.

    Re Tr / N of S(x) L(x + r step) S(x + t)^dagger L(x)^dagger, where L is the straight temporal
    line of length t and S the `spatial_transporter`. Both S are averaged over paths on their
    own, so that the loop is an average over all pairs of a lower and an upper path. The S at x + t
    consists of the links `upper` if they are given. With `every`, loops begin on every so many time
    slices only, from t = 0 on.
    """
    space = spatial_transporter(links, step, r, along)
    above = space if upper is None else spatial_transporter(upper, step, r, along)
    time = transport(links, [(3, 1)] * t)
    far = translate(time, [r * n for n in step])
    loop = space @ far @ dagger(shift(above, 3, t)) @ dagger(time)
    return float(trace(loop).real[::every].mean()) / int(links.shape[-1])


def equivalent_steps(step: Step) -> list[Step]:
    """All steps that cubic rotations and reflections make of `step` (6, 12, 24, 8 of them)."""
    signed = product((1, -1), repeat=3)
    return sorted(
        {(s[0] * p[0], s[1] * p[1], s[2] * p[2]) for s in signed for p in permutations(step)}
    )


def mean_wilson_loop(
    links: Complex,
    path: str,
    r: int,
    t: int,
    upper: Complex | None = None,
    along: Paths = shortest_paths,
    every: int = 1,
) -> float:
    """`wilson_loop` averaged over all equivalent steps of path "100", "110", "210" or "111".

    A step and its opposite give the same average, so half of them would do.
    """
    steps = equivalent_steps((int(path[0]), int(path[1]), int(path[2])))
    return float(np.mean([wilson_loop(links, step, r, t, upper, along, every) for step in steps]))


def mean_polyakov_correlator(links: Complex, path: str, r: int) -> float:
    """Re P(x) P(x + r step)^* averaged over space and all equivalent steps of a path."""
    loops = polyakov_field(links)
    step = (int(path[0]), int(path[1]), int(path[2]))
    values = []
    for equivalent in equivalent_steps(step):
        far = loops
        for axis, n in zip((2, 1, 0), equivalent, strict=True):
            far = np.roll(far, -r * n, axis)
        values.append((loops * far.conj()).real.mean())
    return float(np.mean(values))


def two_links(links: Complex, vector: Step, begin: int, thickness: int) -> Complex:
    """T[z, y, x, a, c, b, d] = L_ab(x) L_cd(x + vector)^* of the lines through some slices."""
    line = links[begin, ..., 3, :, :]
    for t in range(begin + 1, begin + thickness):
        line = line @ links[t, ..., 3, :, :]
    far = np.roll(line, [-n for n in vector[::-1]], (0, 1, 2))
    return np.einsum("...ab,...cd->...acbd", line, far.conj())


def two_level_correlator(
    drawn: Sequence[Sequence[Complex]], vector: Step, outer: int, inner: int | None = None
) -> float:
    """Sum of Re Tr over space of products of averaged two-link operators.

    ``drawn[m][n]`` are the links after n updates of the thin slabs, and m of the thick ones.
    """
    thick = two_level_operators(drawn, vector, outer, inner or outer)
    return float(np.einsum("...acac->...", multiply(thick)).real.sum())


def two_level_wilson_loop(
    drawn: Sequence[Sequence[Complex]],
    fixed: Complex,
    vector: tuple[Step, int, int],
    outer: int,
    inner: int | None = None,
) -> float:
    """Average of Re Tr W / N over the sites at t = 0, `outer`, ..., with two-level averages.

    `fixed` are the links in space, which may be smeared; `vector` is (step, r, t).
    """
    step, r, t = vector
    displacement = (r * step[0], r * step[1], r * step[2])
    thick = two_level_operators(drawn, displacement, outer, inner or outer)
    space, period = spatial_transporter(fixed, step, r), drawn[0][0].shape[0]
    sums = []
    for n, begin in enumerate(range(0, period, outer)):
        between = multiply([thick[(n + k) % len(thick)] for k in range(t // outer)])
        # W^* = S_ac(t)^* T_(ac)(bd) S_bd(t + T)
        near, far = space[begin].conj(), space[(begin + t) % period]
        sums.append(np.einsum("...ac,...acbd,...bd->...", near, between, far).real.mean())
    return float(np.mean(sums)) / int(fixed.shape[-1])


def multiply(operators: Sequence[Complex]) -> Complex:
    """Product of two-link operators."""
    result = operators[0]
    for one in operators[1:]:
        result = np.einsum("...acbd,...bdef->...acef", result, one)
    return result


def two_level_operators(
    drawn: Sequence[Sequence[Complex]], vector: Step, outer: int, thin: int
) -> list[Complex]:
    """Averaged two-link operators of the thick slabs; see `two_level_correlator`."""

    def thick(begin: int) -> Complex:
        per_update = [
            multiply(
                [
                    np.mean([two_links(links, vector, t, thin) for links in some], axis=0)
                    for t in range(begin, begin + outer, thin)
                ]
            )
            for some in drawn
        ]
        return np.mean(per_update, axis=0)

    return [thick(begin) for begin in range(0, drawn[0][0].shape[0], outer)]
