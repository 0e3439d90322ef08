"""`reverie reembed`: every vector made anew, with the embedder that the settings name."""

import sys
from contextlib import AsyncExitStack
from dataclasses import replace

import click

from reverie.commands.notices import say
from reverie.domain.text import ANALYSIS_VERSION
from reverie.errors import ConfigurationError
from reverie.graph.commits import Commits
from reverie.graph.schema import set_up
from reverie.resources import SET_UP_LIMIT, Resources, choose, make_embedder, open_neo4j
from reverie.services import embedding
from reverie.settings import Settings


async def reembed(settings: Settings) -> None:
    """Switches the store to the wanted embedder. ConfigurationError where none is wanted, or none can run."""
    async with AsyncExitStack() as stack:
        opened = await stack.enter_async_context(open_neo4j(settings, say, progress=sys.stderr.isatty()))
        graph = opened.with_time_limit(SET_UP_LIMIT)
        record = await set_up(graph, analysis=ANALYSIS_VERSION, notify=say)
        # as for a new store: what made the vectors until now has no say
        choice = choose(settings, replace(record, embedder=None, dimensions=None), empty=True)
        embedder = make_embedder(settings, choice)
        if embedder is None:
            raise ConfigurationError(choice.note or "no embedder is wanted")
        stack.push_async_callback(embedder.close)
        commits = Commits(graph)
        resources = Resources(
            graph, commits, embedder, None, settings.embedding_timeout, graph.server_version, record.epoch
        )
        say(f"Making vectors with {embedder.name} ({record.embedder or 'none'} before).")
        with click.progressbar(length=1, label="Vectors", file=sys.stderr, show_pos=True) as bar:

            def progress(done: int, total: int) -> None:
                bar.length = max(total, 1)
                bar.update(max(done - bar.pos, 0))

            made = await embedding.reembed(resources, embedder, progress)
        say(f"{made} vectors were made.")
