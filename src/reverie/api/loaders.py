"""The operation's loaders: one for each way into the graph, made when first used, each batch one statement.

The methods named after what they read take a whole level of ids at once and can be called directly.
"""

import asyncio
from collections.abc import Awaitable, Callable, Hashable, Sequence
from typing import Any

from aiodataloader import DataLoader

from reverie.domain.clock import now_ms
from reverie.domain.communities import Community
from reverie.domain.entities import Entity
from reverie.domain.ids import well_formed
from reverie.domain.memories import SimilarMemory
from reverie.domain.pages import Page
from reverie.graph import beliefs, memories, nodes, relations
from reverie.graph.filters import Where
from reverie.graph.relations import Relation, Wanted
from reverie.graph.store import Graph


class _SharedDataLoader(DataLoader[str, Any]):
    """One whose loads outlive who waits for them: another may be waiting too."""

    def load(self, key: str) -> "asyncio.Future[Any]":
        return asyncio.shield(super().load(key))


class Loaders:
    """The reads of one operation, which all see the same instant; `shared`: of several, any of which may end early."""

    def __init__(self, graph: Graph, tenant: str, *, shared: bool = False) -> None:
        self.graph = graph
        self.tenant = tenant
        self.now = now_ms()
        self._kind = _SharedDataLoader if shared else DataLoader
        self._made: dict[Hashable, DataLoader[str, Any]] = {}

    async def nodes_by_id(self, ids: Sequence[str]) -> list[Any]:
        """Things of any kind; None for an id that leads nowhere."""
        known = [given for given in ids if well_formed(given)]
        found = (
            dict(zip(known, await nodes.nodes_by_id(self.graph, self.tenant, known, now=self.now), strict=True))
            if known
            else {}
        )
        return [found.get(given) for given in ids]

    async def vectors_by_id(self, ids: Sequence[str]) -> list[list[float] | None]:
        return await nodes.vectors_by_id(self.graph, self.tenant, ids)

    async def pages(self, relation: Relation, wanted: Wanted, ids: Sequence[str]) -> list[Page[Any]]:
        return await relations.pages(self.graph, self.tenant, relation, wanted, ids, now=self.now)

    async def counts(self, relation: Relation, where: Where, ids: Sequence[str]) -> list[int]:
        return await relations.counts(self.graph, self.tenant, relation, where, ids, now=self.now)

    async def ones(self, relation: Relation, ids: Sequence[str]) -> list[Any]:
        return await relations.ones(self.graph, self.tenant, relation, ids, now=self.now)

    async def communities_by_topic(self, algorithm: str, ids: Sequence[str]) -> list[Community | None]:
        return await relations.communities_by_topic(self.graph, self.tenant, algorithm, ids)

    async def similar_by_memory(self, first: int, least: float, ids: Sequence[str]) -> list[list[SimilarMemory] | None]:
        return await memories.similar_by_memory(self.graph, self.tenant, first, least, ids, now=self.now)

    async def entities_by_subject(self, subjects: Sequence[str]) -> list[Entity | None]:
        return await beliefs.entities_by_subject(self.graph, self.tenant, subjects)

    def node(self, node_id: str) -> Awaitable[Any]:
        return self._loader("node", self.nodes_by_id).load(node_id)

    def vector(self, node_id: str) -> Awaitable[list[float] | None]:
        return self._loader("vector", self.vectors_by_id).load(node_id)

    def page(self, relation: Relation, wanted: Wanted, node_id: str) -> Awaitable[Page[Any]]:
        return self._loader(("page", relation, wanted), lambda ids: self.pages(relation, wanted, ids)).load(node_id)

    def count(self, relation: Relation, where: Where, node_id: str) -> Awaitable[int]:
        return self._loader(("count", relation, where), lambda ids: self.counts(relation, where, ids)).load(node_id)

    def one(self, relation: Relation, node_id: str) -> Awaitable[Any]:
        return self._loader(("one", relation), lambda ids: self.ones(relation, ids)).load(node_id)

    def community(self, algorithm: str, node_id: str) -> Awaitable[Community | None]:
        batch = lambda ids: self.communities_by_topic(algorithm, ids)  # noqa: E731 - as the other loaders'
        return self._loader(("community", algorithm), batch).load(node_id)

    def similar(self, first: int, least: float, node_id: str) -> Awaitable[list[SimilarMemory] | None]:
        batch = lambda ids: self.similar_by_memory(first, least, ids)  # noqa: E731 - as the other loaders'
        return self._loader(("similar", first, least), batch).load(node_id)

    def entity_of_subject(self, subject: str) -> Awaitable[Entity | None]:
        return self._loader("entity of subject", self.entities_by_subject).load(subject)

    def _loader(self, path: Hashable, batch: Callable[[list[str]], Awaitable[Sequence[Any]]]) -> DataLoader[str, Any]:
        loader = self._made.get(path)
        if loader is None:

            async def load(keys: list[str]) -> list[Any]:
                return list(await batch(keys))

            loader = self._made[path] = self._kind(load)
        return loader
