"""Gauge fields as complex128 arrays ``U[t, z, y, x, mu, a, b]``; extents are ``(X, Y, Z, T)``.

``U_mu(x)`` leads from x to x + mu; directions x, y, z, t are 0..3 and sit on array axes 3..0.
A field of matrices on sites is ``G[t, z, y, x, a, b]``.
"""

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

Complex = npt.NDArray[np.complex128]
Real = npt.NDArray[np.float64]
Extents = tuple[int, int, int, int]

COLOURS = {f"su{n}": n for n in range(2, 9)}
CHARGES = {group: (*range(1, n), -n * (n - 1) // 2) for group, n in COLOURS.items()}
"""Integer eigenvalues of the traceless diagonal generator that abelian fields are made of."""


def dagger(matrices: Complex) -> Complex:
    """Hermitian conjugates of the matrices in the last two axes."""
    return matrices.conj().swapaxes(-1, -2)


def trace(matrices: Complex) -> Complex:
    """Traces over the last two axes."""
    traces: Complex = np.trace(matrices, axis1=-2, axis2=-1)
    return traces


def shift(field: Complex, mu: int, steps: int = 1) -> Complex:
    """f(x + steps mu) at every site x, periodic; the leading axes of `field` are t, z, y, x."""
    return np.roll(field, -steps, axis=3 - mu)


def coordinates(extents: Extents) -> npt.NDArray[np.int64]:
    """Coordinates ``c[mu, t, z, y, x]`` of every site."""
    t, z, y, x = np.indices(extents[::-1])
    return np.stack([x, y, z, t])


def parity(extents: Extents) -> npt.NDArray[np.int64]:
    """(x + y + z + t) mod 2 as ``p[t, z, y, x]``."""
    total: npt.NDArray[np.int64] = coordinates(extents).sum(axis=0)
    return total % 2


def extents_of(links: Complex) -> Extents:
    """Extents (X, Y, Z, T) of a field."""
    t, z, y, x = links.shape[:4]
    return x, y, z, t


def random_su(n: int, shape: tuple[int, ...], rng: np.random.Generator) -> Complex:
    """Haar-random SU(n) matrices ``[*shape, n, n]``.

    QR of complex Gaussian matrices, made unique by a positive diagonal of R, is Haar on U(n)
    (Mezzadri, math-ph/0609050); dividing one column by the determinant makes it Haar on SU(n).
    """
    gaussian = rng.normal(size=(2, *shape, n, n))
    q, r = np.linalg.qr(gaussian[0] + 1j * gaussian[1])
    diagonal = r.diagonal(axis1=-2, axis2=-1)
    u: Complex = q * (diagonal / abs(diagonal))[..., None, :]
    u[..., :, 0] /= np.linalg.det(u)[..., None]
    return u


def random_field(extents: Extents, group: str, rng: np.random.Generator) -> Complex:
    """Haar-random links."""
    return random_su(COLOURS[group], (*extents[::-1], 4), rng)


def cold_field(extents: Extents, group: str) -> Complex:
    """All links 1."""
    n = COLOURS[group]
    return np.broadcast_to(np.eye(n, dtype=complex), (*extents[::-1], 4, n, n)).copy()


def gauge_transform(links: Complex, g: Complex) -> Complex:
    """U_mu(x) -> G(x) U_mu(x) G(x + mu)^dagger for ``G[t, z, y, x, a, b]``."""
    return np.stack([g @ links[..., mu, :, :] @ dagger(shift(g, mu)) for mu in range(4)], axis=4)


def angle(extents: Extents, plane: tuple[int, int], quanta: int) -> float:
    """Plaquette angle 2 pi quanta / (L_mu L_nu) that `quanta` flux quanta make in a plane."""
    mu, nu = plane
    return 2 * np.pi * quanta / (extents[mu] * extents[nu])


def abelian_field(extents: Extents, group: str, flux: Mapping[tuple[int, int], int]) -> Complex:
    """Diagonal links of constant field strength, also across the periodic boundary.

    Every plaquette of plane (mu, nu), mu < nu, is diag(exp(i q omega)), with q the `CHARGES` and
    omega = `angle` of the plane's flux quanta: U_nu(x) = exp(i q omega x_mu), and in the last
    layer x_mu = L_mu - 1 also U_mu(x) = exp(-i q omega L_mu x_nu), which closes the torus
    ('t Hooft, Nucl. Phys. B153 (1979) 141).
    """
    x = coordinates(extents)
    phase = np.zeros((*extents[::-1], 4))
    for (mu, nu), quanta in flux.items():
        omega = angle(extents, (mu, nu), quanta)
        phase[..., nu] += omega * x[mu]
        phase[..., mu] -= omega * extents[mu] * x[nu] * (x[mu] == extents[mu] - 1)
    diagonal: Complex = np.exp(1j * phase[..., None] * np.array(CHARGES[group]))
    return diagonal[..., None] * np.eye(COLOURS[group])


def reunitarise(links: Complex) -> Complex:
    """SU(N) matrices from the rows: Gram-Schmidt, beginning with the first; the last is fixed.

    With M^dagger = Q R and a positive diagonal of R, the rows of Q^dagger are those of M after
    Gram-Schmidt. The last one is divided by the determinant.
    """
    q, r = np.linalg.qr(dagger(links))
    diagonal = r.diagonal(axis1=-2, axis2=-1)
    rows: Complex = dagger(q * (diagonal / abs(diagonal))[..., None, :])
    rows[..., -1, :] /= np.linalg.det(rows)[..., None]
    return rows


def flux_links(
    extents: tuple[int, int, int, int],
    xy: tuple[int, ...],
    zt: tuple[int, ...],
    noise: float,
    rng: np.random.Generator,
) -> Complex:
    """Links of constant abelian fields with fluctuations, whose charge is the sum of xy zt.

    The colours have so many quanta of flux 2 pi through every plane xy and zt; both sum up to 0.
    """
    nx, ny, nz, nt = extents
    t, z, y, x = np.meshgrid(*(np.arange(n) for n in extents[::-1]), indexing="ij")
    colours = len(xy)
    angles = np.zeros((*x.shape, 4, colours))
    for n, (one, other) in enumerate(zip(xy, zt, strict=True)):
        f, g = 2 * np.pi * one / (nx * ny), 2 * np.pi * other / (nz * nt)
        angles[..., 1, n], angles[..., 3, n] = f * x, g * z
        angles[..., 0, n] = np.where(x == nx - 1, -f * nx * y, 0)
        angles[..., 2, n] = np.where(z == nz - 1, -g * nz * t, 0)
    shape = (*angles.shape, colours)
    h = rng.normal(size=shape) + 1j * rng.normal(size=shape)
    h = h + dagger(h)
    h -= np.trace(h, axis1=-2, axis2=-1)[..., None, None] * np.eye(colours) / colours
    values, vectors = np.linalg.eigh(noise / 2 * h)
    near: Complex = (vectors * np.exp(1j * values)[..., None, :]) @ dagger(vectors)
    return near * np.exp(1j * angles)[..., None, :]
