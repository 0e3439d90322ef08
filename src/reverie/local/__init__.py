"""The private Neo4j of this machine: fetch, start, watch, stop."""

from reverie.local.distribution import default_cache_dir
from reverie.local.options import LocalNeo4jOptions
from reverie.local.process import LocalNeo4j
from reverie.local.server import private_neo4j

__all__ = ["LocalNeo4j", "LocalNeo4jOptions", "default_cache_dir", "private_neo4j"]
