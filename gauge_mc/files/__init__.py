"""Building blocks of files: safe reading and writing, tables, checksums, links as bytes."""
