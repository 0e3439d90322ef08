"""The server, as callers see it."""

import strawberry


@strawberry.type(description="The server and what it works with.")
class Server:
    version: str = strawberry.field(description="Reverie's version.")
    neo4j_version: str = strawberry.field(description="The version of the Neo4j behind it.")
    embedder: str | None = strawberry.field(description="What makes the vectors; null: search is by word only.")
    embedding_dimensions: int | None = strawberry.field(description="The length of the vectors.")
