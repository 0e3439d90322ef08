"""What an extractor is: a reader of episodes and memories."""

from collections.abc import Sequence
from typing import Protocol

from reverie.domain.entities import EntityType
from reverie.domain.events import Event
from reverie.domain.extraction import KnownBelief, MemoryReading, Reading


class Extractor(Protocol):
    """Reads statements out of episodes, and topics, entities and facts out of memories.

    Any text is legal. What is read isn't yet evidence: `reverie.domain.extraction.evidence_of` decides what counts.
    Calls may run at once.
    """

    @property
    def name(self) -> str:
        """What reads, such as "rules:en" or "openai:gpt-4.1-mini"."""

    async def read_episode(self, events: Sequence[Event], known: Sequence[KnownBelief]) -> Reading:
        """What an episode's events say of their users. Raises ExtractionFailed.

        `known` is what is believed of these users already: its keys are used again for the same things.
        """

    async def read_memory(self, content: str, known_entities: Sequence[tuple[str, EntityType]]) -> MemoryReading:
        """What a memory is about; names and types of known entities are used again. Raises ExtractionFailed."""

    async def close(self) -> None:
        """Ends what the extractor holds open; calls still running fail with ExtractionFailed."""
