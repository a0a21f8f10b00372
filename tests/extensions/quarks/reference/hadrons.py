"""Correlators of hadrons with NumPy: propagators S[t, z, y, x, spin, colour, spin', colour'].

The primed indices are those of the source.
"""

from itertools import permutations

import numpy as np

from tests.extensions.quarks.reference.dirac import GAMMA, GAMMA5
from tests.reference.fields import Complex

C = GAMMA[3] @ GAMMA[1]
"""The matrix of charge conjugation."""


def adjoint(gamma: Complex) -> Complex:
    """gamma_t Gamma^+ gamma_t."""
    return GAMMA[3] @ gamma.conj().T @ GAMMA[3]


def random_propagator(extents, colours, rng) -> Complex:
    """Gaussian random numbers."""
    shape = (2, *extents[::-1], 4, colours, 4, colours)
    numbers = rng.normal(size=shape)
    return numbers[0] + 1j * numbers[1]


def waves(extents, momentum, origin=(0, 0, 0)) -> Complex:
    """exp(-i p (x - origin)) as an array [z, y, x], for a momentum in units of 2 pi / L."""
    z, y, x = np.indices(extents[2::-1])
    angle = sum(
        2 * np.pi * p * (n - o) / length
        for p, n, o, length in zip(momentum, (x, y, z), origin, extents, strict=False)
    )
    return np.exp(-1j * angle)


def sum_of_slices(density: Complex, wave: Complex) -> Complex:
    """Sum over the sites of each time slice."""
    return (density * wave).sum(axis=(1, 2, 3))


def meson(
    first: Complex, second: Complex, sink: Complex, source: Complex, wave: Complex
) -> Complex:
    """-Tr [sink S2(x, 0) source-bar S1(0, x)] with S1(0, x) = gamma_5 S1(x, 0)^+ gamma_5."""
    n = first.shape[-1]

    def times_colour(matrix):
        return np.kron(matrix, np.eye(n))

    one, two = (s.reshape(*s.shape[:4], 4 * n, 4 * n) for s in (first, second))
    five = times_colour(GAMMA5)
    back = five @ np.conj(np.swapaxes(one, -1, -2)) @ five
    product = times_colour(sink) @ two @ times_colour(adjoint(source)) @ back
    return sum_of_slices(-np.trace(product, axis1=-2, axis2=-1), wave)


def epsilon(n: int) -> dict[tuple[int, ...], int]:
    """The elements of the antisymmetric tensor that are not zero."""
    return {p: round(np.linalg.det(np.eye(n)[list(p)])) for p in permutations(range(n))}


def diquark(
    first: Complex, second: Complex, sink: Complex, source: Complex, wave: Complex
) -> Complex:
    """Two colours: epsilon_ab epsilon_a'b' sink_ij S1_ia,i'a' S2_jb,j'b' source_i'j'."""
    density = 0
    for (a, b), sign in epsilon(2).items():
        for (d, e), other in epsilon(2).items():
            density = density + sign * other * np.einsum(
                "ij,...ik,...jl,kl->...", sink, first[..., a, :, d], second[..., b, :, e], source
            )
    return sum_of_slices(density, wave)


def triple(
    first: Complex, second: Complex, third: Complex, sink: Complex, wave: Complex
) -> Complex:
    """Three colours, before source spins are contracted: [t, i', j', k', k].

    epsilon_abc epsilon_a'b'c' sink_ij S1_ia,i'a' S2_jb,j'b' S3_kc,k'c'.
    """
    density = 0
    for (a, b, c), sign in epsilon(3).items():
        for (d, e, f), other in epsilon(3).items():
            density = density + sign * other * np.einsum(
                "ij,...iI,...jJ,...kK->...IJKk",
                sink,
                first[..., a, :, d],
                second[..., b, :, e],
                third[..., c, :, f],
                optimize=True,
            )
    return (density * wave[..., None, None, None, None]).sum(axis=(1, 2, 3))


def baryon(up: Complex, down: Complex, sink: Complex, source: Complex, wave: Complex) -> Complex:
    """<B(x) B-bar(0)>[t, k, k'] for B_k = epsilon_abc (u_a^T sink d_b) u_kc.

    B-bar is that of epsilon_abc (u_a^T source d_b) u_c. The u quarks of the source end in those of
    the sink in two ways.
    """
    end = GAMMA[3] @ source.conj() @ GAMMA[3]
    whole = triple(up, down, up, sink, wave)
    return np.einsum("tIJKk,IJ->tkK", whole, end) + np.einsum("tKJIk,IJ->tkK", whole, end)


def resonance(quark: Complex, sink: Complex, source: Complex, wave: Complex) -> Complex:
    """The same for three equal quarks, which end in each other in six ways."""
    end = GAMMA[3] @ source.conj() @ GAMMA[3]
    whole, total = triple(quark, quark, quark, sink, wave), 0
    for order in permutations("IJK"):
        total = total + np.einsum(f"t{''.join(order)}k,IJ->tkK", whole, end)
    return total


def projected(correlator: Complex, parity: int) -> Complex:
    """parity Tr [(1 + parity gamma_t)/2 C], which is positive for either parity."""
    matrix = parity * (np.eye(4) + parity * GAMMA[3]) / 2
    return np.einsum("kl,tlk->t", matrix, correlator)


def free_propagator(extents, kappa: float, angles, colours: int) -> Complex:
    """M^-1 from the origin on links 1, in momentum space, for psi(x + L) = exp(i angle) psi(x).

    At momentum p, M = 1 - 2 kappa sum over mu of (cos p_mu - i gamma_mu sin p_mu).
    """
    p = np.meshgrid(
        *((2 * np.pi * np.arange(n) + a) / n for n, a in zip(extents, angles, strict=True)),
        indexing="ij",
    )
    m = np.broadcast_to(np.eye(4), (*extents, 4, 4)).astype(complex)
    for mu, q in enumerate(p):
        one = q[..., None, None]
        m = m - 2 * kappa * (np.cos(one) * np.eye(4) - 1j * np.sin(one) * GAMMA[mu])
    periodic = np.fft.ifftn(np.linalg.inv(m), axes=(0, 1, 2, 3))
    x = np.indices(extents)
    turn = sum(a * n / length for a, n, length in zip(angles, x, extents, strict=True))
    spins = (np.exp(1j * turn)[..., None, None] * periodic).transpose(3, 2, 1, 0, 4, 5)
    return np.einsum("tzyxij,ab->tzyxiajb", spins, np.eye(colours))
