"""What one rank hands to the one that reports, as bytes of a bounded size, and one judgment of all of them."""

from __future__ import annotations

import json
import time
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import replace

from gradtrace.errors import DocumentError
from gradtrace.host.ranks import is_alive
from gradtrace.model.finding import Ended, Finding
from gradtrace.model.ranks import Account, Job, LastSeen
from gradtrace.model.schema import DamagedError, Reader, plain
from gradtrace.rules import Judge, in_words

#: findings, facts and remarks of one rank that are handed over, and places related to one finding
_FINDINGS, _FACTS, _REMARKS, _RELATED = 50, 64, 10, 8
#: missing ranks of which the last sign of life is told
_TOLD = 4
_READER = Reader()


def packed(account: Account) -> bytes:
    """The account for `unpacked`."""
    bounded = replace(
        account,
        findings=tuple(_bounded(finding) for finding in account.findings[:_FINDINGS]),
        remarks=account.remarks[:_REMARKS],
        facts=(),
    )
    facts = [{"event": type(fact).__name__, **plain(fact)} for fact in account.facts[:_FACTS]]
    return zlib.compress(json.dumps({**plain(bounded), "facts": facts}, separators=(",", ":")).encode(), 1)


def _bounded(finding: Finding) -> Finding:
    return replace(finding, related=finding.related[:_RELATED])


def unpacked(message: bytes) -> Account:
    """Raises `DocumentError` where it was written by another gradtrace."""
    try:
        found: Account = _READER.read(Account, json.loads(zlib.decompress(message)))
    except (DamagedError, ValueError, zlib.error) as error:
        raise DocumentError(
            f"a rank handed over what cannot be read: {error}; use one gradtrace on all ranks"
        ) from None
    return found


def judged_together(
    judge: Judge,
    size: int,
    own: Account | None,
    others: Sequence[Account],
    missing: Mapping[int, LastSeen | None],
    drafts: Sequence[Account] = (),
) -> Ended | None:
    """Adds to the judge what was found on the other ranks, and what the rules between ranks find. `own` is the account
    of the judge's own rank, None where that is none of the job's; `drafts` are what missing ranks had found so far.

    Returns how the job ended where another rank ended worse than this one.
    """
    judge.join(-1 if own is None else own.rank, {one.rank: one.findings for one in (*others, *drafts)})
    for one in others:
        judge.counts(one.calls, one.steps)
    judge.failed = judge.failed or any(one.incomplete for one in (*others, *drafts))
    accounts = sorted([*others, *([] if own is None else [own])], key=lambda one: one.rank)
    seen = tuple(sign for sign in missing.values() if sign is not None)
    judge.see(Job(size, tuple(accounts), tuple(sorted(missing)), seen))
    if own is not None and own.ended.status:
        return None
    if missing:
        return Ended("killed", 137)
    return next((one.ended for one in accounts if one.ended.status), None)


def remarks(size: int, own: int, others: Sequence[Account], missing: Mapping[int, LastSeen | None]) -> tuple[str, ...]:
    """What a reader must know of the other ranks: who is missing, who ended by an error, what they remark themselves."""
    found = []
    if missing:
        verb = "is" if len(missing) == 1 else "are"
        found.append(f"{in_words(missing)} of {size} {verb} missing from this report")
        found += [f"rank {rank} {_last(sign)}" for rank, sign in sorted(missing.items())[:_TOLD]]
    for one in [one for one in others if one.ended.status][:_TOLD]:
        how = one.ended.exception or one.ended.how
        found.append(f"rank {one.rank} ended after {_counted(one.calls, 'backward call')}: {how}")
    known: dict[str, list[int]] = {}
    for one in others:
        for remark in one.remarks:
            known.setdefault(remark, []).append(one.rank)
    found += [f"{remark} (on {in_words(ranks)})" for remark, ranks in list(known.items())[:_REMARKS]]
    return tuple(found)


def _last(sign: LastSeen | None) -> str:
    if sign is None:
        return "was never seen"
    alive = is_alive(sign)
    state = {True: "does not answer", False: "has died", None: "left no account"}[alive]
    ago = max(time.time() - sign.at, 0.0)
    place = f" at {sign.path}:{sign.line}" if sign.path else ""
    done = f" after {_counted(sign.calls, 'backward call')} and {_counted(sign.steps, 'step')}" if sign.calls else ""
    return f"{state}: it was last seen {ago:.0f} s ago on {sign.host}, {sign.doing}{place}{done}"


def _counted(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
