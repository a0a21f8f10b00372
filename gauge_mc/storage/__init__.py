"""What is common to formats of configurations: orders of links, checksums, headers, containers."""
