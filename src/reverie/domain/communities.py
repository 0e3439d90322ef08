"""Communities: groups of topics that occur together."""

from dataclasses import dataclass
from enum import StrEnum


class CommunityAlgorithm(StrEnum):
    LEIDEN = "LEIDEN"
    LOUVAIN = "LOUVAIN"
    LABEL_PROPAGATION = "LABEL_PROPAGATION"


@dataclass(frozen=True, slots=True)
class Community:
    """A community as it was found; size counts its topics."""

    id: str
    name: str
    algorithm: CommunityAlgorithm
    size: int
