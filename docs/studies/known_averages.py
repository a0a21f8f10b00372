"""Print the averages with which ``gauge-mc doctor --physics`` compares devices.

    python docs/studies/known_averages.py [--updates N]

They are those of a long run of every ensemble in double precision on the CPU, with another seed.
"""

import argparse

from gauge_mc.inspection.doctor import averages, known_ensembles


def main() -> None:
    """Print the averages of all ensembles, with their errors and autocorrelation times."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--updates", type=int, default=20000)
    given = parser.parse_args()
    for known in known_ensembles():
        print(", ".join(f"{name} {value}" for name, value in known.parameters.items()), flush=True)
        found = averages(known, "double", given.updates, "cpu", seed=20261124)
        for one, own in zip(known.averages, found, strict=True):
            print(f"    {one.name}: {own.value:.7g} +- {own.error:.2g}, tau_int {own.tau_int:.2f}")


if __name__ == "__main__":
    main()
