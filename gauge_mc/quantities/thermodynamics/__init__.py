"""Energy and pressure, from plaquettes or from the flowed energy-momentum tensor."""
