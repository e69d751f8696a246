"""Values of parameters that were kept without a copy are put back, which restores nothing.

Why it matters
    model.state_dict(), p.data and p.detach() share their memory with the parameters: what changes these changes the backup
    with them. load_state_dict() then copies each parameter onto itself, and the model stays as it is: the best epoch is
    lost, the next fold starts from trained weights, an attack on the weights stays in them.

Bad
    best, best_loss = None, float("inf")
    for x, y in data:
        loss = loss_fn(model(x), y)
        if loss.item() < best_loss:
            best, best_loss = model.state_dict(), loss.item()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    model.load_state_dict(best)  # the last weights

Good
    best, best_loss = None, float("inf")
    for x, y in data:
        loss = loss_fn(model(x), y)
        if loss.item() < best_loss:
            best, best_loss = copy.deepcopy(model.state_dict()), loss.item()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    model.load_state_dict(best)

dict(), copy.copy() and a comprehension copy the dictionary and not the tensors, and .cpu() copies nothing that lies on the CPU
already. The finding is at the line that took the values.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable

from gradtrace.model.events import Event, SharedBackup
from gradtrace.model.finding import Finding, Level
from gradtrace.model.site import Site
from gradtrace.rules.base import Rule
from gradtrace.rules.judging.naming import attribute_read, describe
from gradtrace.source import syntax


class SharedBackupRule(Rule):
    id = "shared-backup"
    level = Level.WARNING
    events = (SharedBackup,)

    def see(self, event: Event) -> Iterable[Finding]:
        if not isinstance(event, SharedBackup) or not event.stack or not event.restored:
            return []
        by_state = event.op == "state_dict()"
        taken = _taken(event.stack[0], event.op)
        return self.finding(
            event.stack,
            f"`{taken}` shares its memory with {'the model' if by_state else 'the parameter'}: the values kept with it "
            f"changed too, and `{_restored(event.restored[0])}` restores nothing",
            f"keep a copy: `{f'copy.deepcopy({taken})' if by_state else f'{taken}.clone()'}`",
            (
                (event.step, "this step changed the parameters, and the kept values with them"),
                (event.restored, "this sets parameters to the values that they have already"),
                (event.stack[1:], "called from here"),
            ),
        )


def _taken(site: Site, op: str) -> str:
    """The expression that takes the values, in the user's words as far as they are known."""
    if op == ".data":
        holder = attribute_read(site, "data")
        return f"{holder}.data" if holder else "p.data"
    found = syntax.call(site, (op.removesuffix("()"),))
    return ast.unparse(found) if found is not None else f"{'model' if op == 'state_dict()' else 'p'}.{op}"


def _restored(site: Site) -> str:
    """The call or the statement that puts them back."""
    found = syntax.call(site, ("load_state_dict", "copy_"))
    if found is not None:
        return ast.unparse(found)
    statement = syntax.statement(site.path, site.line, site.column)
    return describe(site) if statement is None else ast.unparse(statement).partition("\n")[0]
