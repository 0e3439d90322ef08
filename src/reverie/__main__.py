"""The command line: names the commands, nothing else."""

import asyncio
import logging
import os
import sys
from typing import Any

import click

from reverie import __version__
from reverie.commands.notices import options
from reverie.errors import ReverieError
from reverie.settings import Settings

PRIVATE_NEO4J = ("cache_dir", "java", "neo4j_version", "neo4j_heap", "neo4j_page_cache")
STORE = (
    "data_dir",
    "neo4j_uri",
    "neo4j_username",
    "neo4j_password",
    "neo4j_database",
    "neo4j_timeout",
    *PRIVATE_NEO4J,
)
EMBEDDING = (
    "embedder",
    "embedding_model",
    "embedding_dimensions",
    "embedding_timeout",
    "openai_api_key",
    "openai_base_url",
)

DREAMING = (
    "extractor",
    "extraction_model",
    "extraction_timeout",
    "idle_gap",
    "half_life_fact",
    "half_life_preference",
    "half_life_belief",
    "dream_attempts",
    "lease",
)


DOCUMENTS = (
    "document_bytes",
    "chunk_size",
    "chunk_overlap",
    "parse_timeout",
    "parse_memory",
    "link_timeout",
    "link_redirects",
)


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(__version__, prog_name="reverie")
def cli() -> None:
    """Graph memory for AI agents, served as a GraphQL API over Neo4j.

    Every flag has an environment variable, named in brackets; a flag goes before its variable.
    """


@cli.command()
@options(
    "host",
    "port",
    "api_keys",
    *STORE,
    *EMBEDDING,
    "worker",
    *DREAMING,
    *DOCUMENTS,
    "communities_interval",
    "redis_url",
    "log_level",
)
def serve(**given: Any) -> None:
    """Serve the API and GraphiQL, starting a private Neo4j where no other is named."""
    from reverie.commands.serve import serve as run  # noqa: PLC0415 - other commands start sooner without it

    run(_settings(given))


@cli.command()
@options(*STORE, *EMBEDDING, *DREAMING, *DOCUMENTS, "communities_interval", "redis_url", "log_level")
def work(**given: Any) -> None:
    """Run a worker: episodes become beliefs, memories are enriched and embedded. `serve` has one of its own."""
    from reverie.commands.work import work as run  # noqa: PLC0415 - other commands start sooner without it

    run(_settings(given))


@cli.command()
@options(*STORE, *EMBEDDING, *DREAMING, "redis_url", "log_level")
def dream(**given: Any) -> None:
    """Read all pending episodes now, with a bar."""
    from reverie.commands.dream import dream as run  # noqa: PLC0415 - other commands start sooner without it

    asyncio.run(run(_settings(given)))


@cli.command()
@options("host", "port", "neo4j_timeout", *PRIVATE_NEO4J, *EMBEDDING, *DREAMING, *DOCUMENTS, "log_level")
def demo(**given: Any) -> None:
    """Serve a throw-away store filled with two months of a small software team."""
    from reverie.commands.demo import demo as run  # noqa: PLC0415 - other commands start sooner without it

    run(_settings(given))


@cli.command()
@options(*STORE, *EMBEDDING, "log_level")
def setup(**given: Any) -> None:
    """Set up the store's constraints and indexes; `serve` does it by itself."""
    from reverie.commands.setup import setup as run  # noqa: PLC0415 - other commands start sooner without it

    asyncio.run(run(_settings(given)))


@cli.command()
@options(*STORE, *EMBEDDING, "log_level")
def reembed(**given: Any) -> None:
    """Make every vector anew with the embedder that the settings name. Stop the servers before."""
    from reverie.commands.reembed import reembed as run  # noqa: PLC0415 - other commands start sooner without it

    asyncio.run(run(_settings(given)))


@cli.command()
def schema() -> None:
    """Print the GraphQL schema."""
    from reverie.api.schema import sdl  # noqa: PLC0415 - other commands start sooner without it

    click.echo(sdl(), nl=False)


def _settings(given: dict[str, Any]) -> Settings:
    settings = Settings.read(os.environ, **given)
    logging.basicConfig(
        level=settings.log_level.upper(), format="%(asctime)s %(levelname)s %(name)s: %(message)s", stream=sys.stderr
    )
    if settings.log_level != "debug":
        # the driver logs what it raises as well, and what it raises is told in our words
        logging.getLogger("neo4j").setLevel(logging.CRITICAL)
    return settings


def main() -> None:
    """Runs a command; what goes wrong is one sentence, and an exit code that isn't 0."""
    try:
        cli()
    except ReverieError as error:
        click.echo(f"reverie: {error}", err=True)
        sys.exit(1)


if __name__ == "__main__":
    main()
