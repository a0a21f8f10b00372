"""One flavour of quarks on domain walls, or any other power of a ratio of determinants."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from gauge_mc.fields.algebra_field import AlgebraField
from gauge_mc.fields.random_field import Random
from gauge_mc.quarks.forces.normal import QuarkSolver
from gauge_mc.quarks.operators import DiracOperator
from gauge_mc.quarks.solvers import Failures, Mask
from gauge_mc.quarks.vectors.algebra import Combine
from gauge_mc.quarks.vectors.spinors import SpinorField
from gauge_mc.updates.energy import Energy
from gauge_mc.updates.monomials import MONOMIALS
from gauge_mc.updates.monomials.rational import ACCURACY, NormalPowers, Rational
from gauge_mc.updates.pseudofermions import draw_all, local_norms


@MONOMIALS.register
class RationalRatio(Rational):
    """S = |R1 Q2 phi|^2 on the even sites, for |det Mh1 / det Mh2|^f with f flavours.

    R1(x) ~ x^(-f/4) is a function of Mh1 Mh1^dagger and Q2(x) ~ x^(f/4) one of Mh2 Mh2^dagger, with
    the exactness and the range of `Rational`. For quarks on domain walls the second operator is
    that of Pauli-Villars. As the fields of both are the same, their noise cancels as far as the two
    operators are alike, which two terms would not do.

    Parameters
    ----------
    light, heavy : DiracOperator
        The operators M1 and M2, on links that are updated before a method is called.
    request, number, flavours, ends, accuracy, title
        See `Rational`; the ends are those of Mh1 Mh1^dagger.

    Attributes
    ----------
    heavy : NormalPowers
        The functions of Mh2 Mh2^dagger.
    """

    name = "rational-ratio"
    summary = "pseudofermions of one flavour on domain walls, with rational functions of two masses"
    vectors = 400  # twice those of a rational function, and the poles of which a force follows

    def __init__(
        self,
        light: DiracOperator,
        heavy: DiracOperator,
        request: QuarkSolver,
        number: int,
        flavours: float = 1,
        ends: tuple[float, float] | None = None,
        accuracy: float = ACCURACY,
        title: str = "rational_ratio",
    ) -> None:
        super().__init__(light, request, number, flavours, ends, accuracy, title)
        self.heavy = NormalPowers(heavy, request, flavours, flavours / 4, None, accuracy, self)
        empty = self.phi.like
        self._psi, self._chi, self._sum = empty(), empty(), empty()
        self._of_phi = [empty() for _ in self.heavy.force_function.residues]

    def _draw(self, randoms: Sequence[Random], failures: Failures) -> list[Energy]:
        """Draw phi = Q2^-1 R1^-1 eta, for normal random vectors eta; see `Monomial.draw`."""
        draw_all(self._eta, randoms, self._number, failures)
        self.powers.multiply(self._z, self.powers.inverse_root, self._eta, failures)
        self.heavy.multiply(self.phi, self.heavy.root, self._z, failures)
        return local_norms(self._eta)

    def actions(self, failures: Failures) -> list[Energy]:
        """Return |R1 Q2 phi|^2; see `Monomial.actions`."""
        self.heavy.multiply(self._psi, self.heavy.inverse_root, self.phi, failures)
        self.powers.multiply(self._z, self.powers.root, self._psi, failures)
        return local_norms(self._z)

    def add_force(self, force: AlgebraField, wanted: Mask, failures: Failures) -> None:
        """Add the forces; see `Monomial.add_force`.

        With psi = Q2 phi and chi = R1^2 psi, dS is the sum of psi^dagger (d R1^2) psi and
        2 Re phi^dagger (dQ2) chi. A pole of Q2 contributes -residue 2 Re X^dagger
        d(Mh2 Mh2^dagger) Z to the latter, with its solutions X and Z for phi and chi.
        """
        heavy, light, tolerance = self.heavy, self.powers, self._request.force_tolerance
        residues = heavy.force_function.residues.tolist()
        found = heavy.solutions(self.phi, heavy.force_function, tolerance, wanted, failures)
        Combine(self._psi, self.phi)(0, heavy.force_function.constant)
        for x, kept, residue in zip(found, self._of_phi, residues, strict=True):
            Combine(kept, x)(0, 1)
            Combine(self._psi, x)(1, residue)
        Combine(self._chi, self._psi)(0, light.force_function.constant)
        found = light.solutions(self._psi, light.force_function, tolerance, wanted, failures)
        own = light.force_function.residues.tolist()
        light.add_force(force, self._added(found, own), own)
        found = heavy.solutions(self._chi, heavy.force_function, tolerance, wanted, failures)
        halves = [sign * residue / 2 for residue in residues for sign in (1, -1)]
        heavy.add_force(force, self._sums(found), halves)

    def _added(
        self, solutions: Iterator[SpinorField], residues: Sequence[float]
    ) -> Iterator[SpinorField]:
        """Yield the solutions of R1^2 for psi, and add them to chi."""
        for x, residue in zip(solutions, residues, strict=True):
            Combine(self._chi, x)(1, residue)
            yield x

    def _sums(self, solutions: Iterator[SpinorField]) -> Iterator[SpinorField]:
        """Yield X + Z and X - Z for all poles, as 4 Re X^dagger N Z is the difference of theirs."""
        for x, z in zip(self._of_phi, solutions, strict=True):
            for sign in (1, -1):
                Combine(self._sum, x)(0, 1)
                Combine(self._sum, z)(1, sign)
                yield self._sum
