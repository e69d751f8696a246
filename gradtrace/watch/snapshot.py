from __future__ import annotations
from gradtrace.watch.session import Session
class Snapshots:
    def attach(self, session: Session) -> None: ...
