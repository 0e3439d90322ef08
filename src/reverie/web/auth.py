"""Who is asking: an API key as a bearer token names a tenant; without any keys there is one tenant."""

import hashlib
import hmac
from collections.abc import Mapping

from reverie.errors import Unauthenticated

DEFAULT_TENANT = "default"


class Callers:
    """The callers of this server; keys are kept as hashes only."""

    def __init__(self, keys: Mapping[str, str]) -> None:
        self._tenants = {_hashed(key): tenant for key, tenant in keys.items()}

    def tenant(self, authorization: str | None) -> str:
        """The tenant of an Authorization header; Unauthenticated for a missing or unknown key."""
        if not self._tenants:
            return DEFAULT_TENANT
        scheme, _, key = (authorization or "").partition(" ")
        if scheme.lower() != "bearer" or not key.strip():
            raise Unauthenticated("an API key is needed: Authorization: Bearer …")
        asked = _hashed(key.strip())
        # every key is compared, so that the time taken tells nothing of which one is near
        found = [tenant for known, tenant in self._tenants.items() if hmac.compare_digest(known, asked)]
        if not found:
            raise Unauthenticated("this API key is not known")
        return found[0]


def _hashed(key: str) -> bytes:
    return hashlib.sha256(key.encode()).digest()
