"""What observables of hadrons have in common: quark propagators, options, tables."""
