"""Health: whether the process lives, and whether it can serve."""

import asyncio

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from reverie.errors import ReverieError
from reverie.graph.schema import read_record
from reverie.resources import Resources

PATIENCE = 3.0


async def live(_: Request) -> Response:
    """200 as long as the process answers at all."""
    return JSONResponse({"status": "live"})


async def ready(request: Request) -> Response:
    """200 when Neo4j answers and the store is set up, 503 with the reason otherwise."""
    resources: Resources = request.app.state.resources
    try:
        async with asyncio.timeout(PATIENCE):
            record = await read_record(resources.graph)
    except (ReverieError, TimeoutError):
        return JSONResponse({"status": "unavailable", "neo4j": "does not answer"}, 503)
    if record is None:
        return JSONResponse({"status": "unavailable", "neo4j": "is not set up"}, 503)
    search = "by meaning and by word" if resources.embedder is not None else "by word"
    return JSONResponse({"status": "ready", "neo4j": resources.neo4j_version, "search": search})
