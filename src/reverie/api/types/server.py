"""The server, as callers see it."""

from datetime import datetime

import strawberry

from reverie.api.context import Info
from reverie.domain.clock import from_ms_or_none
from reverie.services.dreaming import worker_state


@strawberry.type(description="How the background work of this tenant stands.")
class WorkerState:
    running: bool = strawberry.field(description="Whether any worker shows life.")
    pending_episodes: int = strawberry.field(description="Episodes that wait, or are being read.")
    failed_episodes: int = strawberry.field(description="Episodes that were given up; retryEpisode sends them back.")
    last_dream_at: datetime | None = strawberry.field(description="When an episode was last consolidated.")


async def _worker(info: Info) -> WorkerState:
    running, owed = await worker_state(info.context.resources, info.context.tenant)
    return WorkerState(
        running=running,
        pending_episodes=owed.pending,
        failed_episodes=owed.failed,
        last_dream_at=from_ms_or_none(owed.last),
    )


@strawberry.type(description="The server and what it works with.")
class Server:
    version: str = strawberry.field(description="Reverie's version.")
    neo4j_version: str = strawberry.field(description="The version of the Neo4j behind it.")
    embedder: str | None = strawberry.field(description="What makes the vectors; null: search is by word only.")
    embedding_dimensions: int | None = strawberry.field(description="The length of the vectors.")
    extractor: str = strawberry.field(description="What reads episodes and memories.")
    worker: WorkerState = strawberry.field(resolver=_worker, description="The background work.")
