"""The common part of these modules."""
