"""Values and rules: no I/O, no async, no framework."""
