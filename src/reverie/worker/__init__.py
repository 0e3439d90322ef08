"""The background: a loop that finds what waits, and hands it to the use cases."""
