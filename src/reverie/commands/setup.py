"""`reverie setup`: the store's schema and indexes, for a server that several processes share."""

from reverie.commands.notices import say
from reverie.resources import open_resources
from reverie.settings import Settings


async def setup(settings: Settings) -> None:
    """Sets the store up, as `serve` does by itself at its start."""
    async with open_resources(settings, say) as resources:
        say(f"The store in Neo4j {resources.neo4j_version} is set up.")
        say(
            resources.embedder_note
            or f"Its vectors are made by {resources.embedder.name if resources.embedder else 'none'}."
        )
