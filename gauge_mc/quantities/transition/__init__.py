"""The deconfinement transition: reweighting, susceptibilities, cumulants, infinite volume."""
