"""What everything with an id has in common."""

import strawberry


@strawberry.interface(description="Anything that can be read again by its id.")
class Node:
    id: strawberry.ID = strawberry.field(description="Its id: a UUID version 7, unique across all types.")
