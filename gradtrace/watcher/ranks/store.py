"""The job's own rendezvous store as a board: no collective, no thread, no server beside the one that the job has."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import torch.distributed.distributed_c10d as c10d

from gradtrace.host.boards import BoardLostError

_PREFIX = "gradtrace"
_TIMEOUT = timedelta(seconds=10)


class StoreBoard:
    """Messages in a `PrefixStore` on the job's store. `store` is kept alive as long as this object."""

    def __init__(self, store: Any) -> None:
        self._kept = store
        self._store = c10d.PrefixStore(_PREFIX, _own_connection(store))

    def put(self, name: str, message: bytes) -> None:
        """Raises `BoardLostError`."""
        self._ask(self._store.set, name, message)

    def get(self, name: str) -> bytes | None:
        """Raises `BoardLostError`."""
        found: bytes | None = self._ask(self._find, name)
        return found

    def claim(self, name: str) -> bool:
        """Raises `BoardLostError`."""
        return bool(self._ask(self._store.add, f"claimed-{name}", 1) == 1)

    def _find(self, name: str) -> bytes | None:
        return self._store.get(name) if self._store.check([name]) else None

    def _ask(self, work: Any, *args: Any) -> Any:
        if self._kept is None:
            raise BoardLostError("the store was lost before")
        try:
            return work(*args)
        except Exception as error:
            self._kept = None
            raise BoardLostError(str(error)) from error


def _own_connection(store: Any) -> Any:
    """A connection beside that of the script, which may wait in it; the same store where it can have only one."""
    try:
        found = store.clone()
        found.set_timeout(_TIMEOUT)
    except Exception:  # noqa: BLE001 - whatever kind of store the script has made
        return store
    return found
