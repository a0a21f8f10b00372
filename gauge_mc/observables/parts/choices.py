"""Options of observables, and what they need to know of lattices, groups and ensembles."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Self

from gauge_mc.domain.lattice import Lattice
from gauge_mc.fields.field import Field
from gauge_mc.options import Option, check_options


class ChoiceParts:
    """The options of an observable."""

    name: ClassVar[str]
    """Name on the command line, for ``--measure``."""
    options: ClassVar[tuple[Option, ...]] = ()
    """Options of `for_lattice`."""
    smears: ClassVar[bool] = False
    """True if `for_lattice` also accepts a smearing and its options."""

    @classmethod
    def for_lattice(cls, lattice: Lattice, **options: Any) -> Self:
        """Return the observable for fields on a lattice.

        Parameters
        ----------
        lattice : Lattice
            Extents of the lattice.
        **options : object
            Values of the options, by name.

        Raises
        ------
        UsageError
            If an option is unknown or its value is invalid.
        """
        return cls(**check_options(cls.options, options, cls.name))

    @classmethod
    def owners(cls) -> list[tuple[str, tuple[Option, ...]]]:
        """Return what declares the options, as named in messages, with the options of each."""
        return [(cls.name, cls.options)]

    def for_group(self, group: str) -> Self:
        """Return the observable for a gauge group, given its name, if its `records` depend on it.

        Raises
        ------
        UsageError
            If it is not defined for the group.
        """
        return self

    def for_ensemble(self, metadata: Mapping[str, str], field: Field | None = None) -> Self:
        """Return the observable for an ensemble, if it needs to know more than options and group.

        Parameters
        ----------
        metadata : mapping of str to str
            Metadata of the ensemble, as in the headers of tables, such as ``beta``.
        field : Field, optional
            The first configuration, which is given if `records` is still 0 without it.

        Raises
        ------
        UsageError
            If the metadata contradict the options.
        """
        return self
