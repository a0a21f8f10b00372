"""Phase transitions at finite temperature, from runs at several couplings and volumes."""
