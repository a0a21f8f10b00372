"""What files are made of: safe reading and writing, tables, checksums, links as bytes."""
