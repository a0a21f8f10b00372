"""The links that terms of the action see in hybrid Monte Carlo, and their Dirac operators."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from gauge_mc.errors import UsageError
from gauge_mc.fields.field import Field
from gauge_mc.quarks.domain_walls.doublet import TwistedDoublet
from gauge_mc.quarks.operators import OPERATORS, DiracOperator, dirac_operators, operator_with
from gauge_mc.quarks.vectors.transport import ANTIPERIODIC, Boundary
from gauge_mc.registry import in_words

PRECISION = "double"


class TermLinks:
    """A copy of the links in one place of memory, on which prepared operators rely.

    Parameters
    ----------
    like : Field
        A field of the kind of those that move, with as many replicas as move together.

    Raises
    ------
    GaugeError
        If a device has too little memory.
    """

    def __init__(self, like: Field) -> None:
        kind = like.lattice, like.group.name, like.precision, like.devices
        self.field = Field.empty(*kind, replicas=len(like.replicas))
        self._operators: dict[tuple[object, ...], DiracOperator] = {}
        self.take(like)

    def take(self, links: Field) -> None:
        """Copy links, update the halos, and let all operators see them."""
        self.field.copy(links)
        self.refresh()

    def refresh(self) -> None:
        """Update the halos, and let all operators see the links, which have changed."""
        self.field.exchange_halo(None)
        for operator in self._operators.values():
            operator.refresh()

    def operator(
        self,
        name: str,
        number: float,
        boundary: complex | Sequence[complex] = ANTIPERIODIC,
        **parameters: Any,
    ) -> DiracOperator:
        """Return a Dirac operator on the links, the same for the same parameters.

        Parameters
        ----------
        name : str
            Name of a registered operator, such as ``twisted-mass``; if it is empty, the one with
            the parameters, see `gauge_mc.quarks.operators.operator_with`.
        number : float
            Hopping parameter, or mass; see `QuarkOperator.quark`.
        boundary : complex or sequence of complex
            The phases across the boundary; see `DiracOperator`.
        **parameters : object
            The operator's other parameters, such as mu.

        Raises
        ------
        UsageError
            If a value is invalid, the force of the operator is not known, or the links are not in
            double precision.
        """
        if self.field.precision != PRECISION:
            raise UsageError(inexact(self.field.precision))
        phases = Boundary.of(boundary).phases
        key = (name, number, phases, *sorted(parameters.items()))
        if key not in self._operators:
            if name and OPERATORS[name].name not in dirac_operators():
                raise UsageError(
                    f"The force of quarks with the operator '{name}' is not known yet; choose "
                    f"{in_words(dirac_operators(), 'or')}."
                )
            make: Callable[..., DiracOperator] = dirac_operators().get(name, operator_with)
            made = make(self.field, number, boundary=phases, **parameters)
            self._operators[key] = made
        return self._operators[key]

    def doublet(
        self,
        kappa: float,
        mu_sigma: float,
        mu_delta: float,
        boundary: complex | Sequence[complex] = ANTIPERIODIC,
    ) -> TwistedDoublet:
        """Return a new operator of a doublet on the links; see `TwistedDoublet`.

        Raises
        ------
        UsageError
            If a value is invalid.
        """
        made = TwistedDoublet(self.field, kappa, mu_sigma, mu_delta, boundary)
        self._operators[made.name, len(self._operators)] = made
        return made


def inexact(precision: str) -> str:
    """Return the sentence for links in a precision in which there are no quarks."""
    return (
        f"Links in {precision} precision are too inexact for trajectories with quarks; choose "
        f"--precision {PRECISION}."
    )
