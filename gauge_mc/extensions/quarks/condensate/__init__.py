"""The chiral condensate and its susceptibility."""
