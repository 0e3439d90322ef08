"""The private Neo4j of this machine: fetch, start, watch, stop."""
