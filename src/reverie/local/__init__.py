"""The private Neo4j of this machine: fetch, start, watch, stop."""

from reverie.local.distribution import default_cache_dir
from reverie.local.server import LocalNeo4j, LocalNeo4jOptions, private_neo4j

__all__ = ["LocalNeo4j", "LocalNeo4jOptions", "default_cache_dir", "private_neo4j"]
