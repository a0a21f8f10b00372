"""The common part of formats of configurations: orders of links, checksums, headers, containers."""
