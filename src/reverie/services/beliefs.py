"""Beliefs: set and retracted by callers; what dreaming learns takes the same way through the ledger."""

from typing import NamedTuple

from reverie.domain.beliefs import Belief, BeliefRetraction, BeliefUpsert, check_retraction, check_upsert
from reverie.domain.changes import BeliefChange
from reverie.domain.clock import from_ms, now_ms
from reverie.graph import beliefs
from reverie.resources import Resources
from reverie.services.bells import tell_changes
from reverie.services.writing import check_id, read_back, write


class BeliefWritten(NamedTuple):
    """A version that a caller's word is about, and the entry of the log it made; None where only the past changed."""

    belief: Belief
    change: BeliefChange | None


async def upsert_belief(resources: Resources, tenant: str, upsert: BeliefUpsert, key: str | None) -> BeliefWritten:
    """Sets a belief from now on, or from an instant of the past.

    Conflict where another version is current than expected, and for a value that was retracted after that instant.
    """
    upsert = check_upsert(upsert, from_ms(now_ms()))
    draft = beliefs.Upsert(upsert, resources.dreaming.half_lives)
    return await _write(resources, tenant, "upsertBelief", draft, key, upsert)


async def retract_belief(
    resources: Resources, tenant: str, retraction: BeliefRetraction, key: str | None
) -> BeliefWritten:
    """Declares the value of a version never true; Conflict where another version is current than expected."""
    check_id(retraction.id, "belief")
    retraction = check_retraction(retraction)
    draft = beliefs.Retraction(retraction, resources.dreaming.half_lives)
    return await _write(resources, tenant, "retractBelief", draft, key, retraction)


async def _write(
    resources: Resources, tenant: str, field: str, draft: object, key: str | None, asked: object
) -> BeliefWritten:
    writer = beliefs.write_beliefs
    done = await write(resources, tenant, field, writer, draft, key, logged=True, asked=asked)
    if done["change"] is not None:
        tell_changes(resources, tenant)
    (belief,) = await read_back(resources, tenant, [done["belief"]], Belief)
    if done["change"] is None:
        return BeliefWritten(belief, None)
    (change,) = await read_back(resources, tenant, [done["change"]], BeliefChange)
    return BeliefWritten(belief, change)
