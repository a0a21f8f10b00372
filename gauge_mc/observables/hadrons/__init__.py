"""The common part of observables of hadrons: quark propagators, options, tables."""
