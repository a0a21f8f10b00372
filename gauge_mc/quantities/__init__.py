"""Results, a folder for each field: what is measured, analysed, fitted and drawn."""
