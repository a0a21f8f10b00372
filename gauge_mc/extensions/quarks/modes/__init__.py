"""Low eigenvectors and the spectrum of operators, computed and kept in files."""
