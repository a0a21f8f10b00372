"""An option of hybrid Monte Carlo whose values are terms of the action: adjoint plaquettes."""

from collections.abc import Sequence

from gauge_mc.option_items import Items, OptionItem
from gauge_mc.options import Option
from gauge_mc.updates.monomials import MONOMIALS
from gauge_mc.updates.terms import ActionTerms, RunMonomial


class AdjointItem(OptionItem):
    """A coupling of adjoint plaquettes."""

    kind, between = "coupling", ","

    @classmethod
    def options(cls) -> tuple[Option, ...]:
        """Return the coupling."""
        return (Option("strength", float, "Coupling.", least=-10, most=10),)


class AdjointTerms(ActionTerms):
    """Adjoint plaquettes, on the outermost level."""

    name, words = "adjoint", "adjoint plaquettes"
    option = Option("adjoint", str, "Adjoint plaquettes.", usual=Items(), items=AdjointItem)
    items, kind = AdjointItem, MONOMIALS["adjoint-plaquette"]

    def terms(self, values: Sequence[AdjointItem], levels: int) -> list[RunMonomial]:
        """Return a term for every coupling."""
        return [self.term(f"{self.name}{n}", one.strength) for n, one in enumerate(values, 1)]

    def term(self, title: str, beta: float) -> RunMonomial:
        """Return the term with a coupling."""
        return RunMonomial(
            title, 0, self.kind, lambda links: self.kind(links.field, title, beta=beta)
        )


ADJOINT = AdjointTerms()
