"""`reverie setup`: the store's schema and indexes, for a server that several processes share."""

from reverie.commands.notices import embedder_sentence, say
from reverie.resources import open_resources
from reverie.settings import Settings


async def setup(settings: Settings) -> None:
    """Sets the store up, as `serve` does by itself at its start."""
    async with open_resources(settings, say) as resources:
        say(f"The store in Neo4j {resources.neo4j_version} is set up.")
        say(embedder_sentence(settings, resources))
