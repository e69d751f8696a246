"""Training continues in evaluation mode, or dropout stays active in evaluation.

Why it matters
    model.eval() switches dropout off and makes batch norm use its running statistics. Where an evaluation in the middle
    of training does not switch back, the steps after it train without regularization and with frozen statistics.
    F.dropout without training=self.training is active in both modes, so evaluations are random.

Bad
    net = nn.Sequential(nn.Linear(8, 16), nn.Dropout(0.2), nn.Linear(16, 1))
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
    for x, y in data:
        optimizer.zero_grad()
        loss_fn(net(x), y).backward()
        optimizer.step()
        net.eval()
        with torch.no_grad():
            print(loss_fn(net(x), y).item())

Good
    net = nn.Sequential(nn.Linear(8, 16), nn.Dropout(0.2), nn.Linear(16, 1))
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
    for x, y in data:
        net.train()
        optimizer.zero_grad()
        loss_fn(net(x), y).backward()
        optimizer.step()
        net.eval()
        with torch.no_grad():
            print(loss_fn(net(x), y).item())

The finding is at the line of the training loop after which the mode is wrong. Layers that train in evaluation mode from the
start, or that are switched without an evaluation, as a frozen batch norm is, are not reported; nor is dropout with
training=True, as in Monte Carlo dropout.
"""

from __future__ import annotations

from collections.abc import Iterable

from gradtrace.model.events import Event
from gradtrace.model.finding import Finding, Level, Needs
from gradtrace.model.site import Stack
from gradtrace.model.truths import DropoutInEvaluation, EvaluatedInTraining, LeftInEvaluation, TrainedInEvaluation
from gradtrace.rules.base import Rule
from gradtrace.rules.judging.blame import in_function_of, run_without_gradients
from gradtrace.source import syntax

_DROPOUTS = ("dropout", "alpha_dropout", "feature_alpha_dropout", "dropout1d", "dropout2d", "dropout3d")
#: of their argument `training`
_POSITION = 2


class WrongMode(Rule):
    id = "wrong-mode"
    level = Level.WARNING
    events = (LeftInEvaluation, TrainedInEvaluation, EvaluatedInTraining, DropoutInEvaluation)
    needs = Needs(steps=2)

    def see(self, event: Event) -> Iterable[Finding]:
        if isinstance(event, LeftInEvaluation):
            return self._left(event)
        if isinstance(event, TrainedInEvaluation):
            return self._from_start(event)
        if isinstance(event, EvaluatedInTraining):
            return self._in_training(event)
        if isinstance(event, DropoutInEvaluation) and not _names_mode(event.stack):
            return self.finding(
                event.stack,
                f"F.dropout is active in evaluation mode: {event.calls} calls without gradients dropped values at random",
                "pass training=self.training, or use an nn.Dropout module, which follows eval()",
                ((event.stack[1:], "called from here"),),
            )
        return []

    def _from_start(self, event: TrainedInEvaluation) -> list[Finding]:
        return self.finding(
            event.switched,
            "the whole run trains in evaluation mode: dropout is off, and batch norm uses its running statistics",
            "call train() on the model before the training loop",
            (
                (event.backward, "this backward call trains in evaluation mode"),
                (event.layer, "this layer runs in evaluation mode"),
            ),
            Level.NOTE,
        )

    def _in_training(self, event: EvaluatedInTraining) -> list[Finding]:
        return self.finding(
            run_without_gradients(event.layer),
            "this evaluation runs in training mode: dropout drops values at random, and batch norm uses the statistics of "
            "each batch and updates its own",
            "call eval() on the model before the evaluation, and train() after it",
            ((event.layer, "this layer runs in training mode"), (event.layer[-1:], "called from here")),
            Level.NOTE,
        )

    def _left(self, event: LeftInEvaluation) -> list[Finding]:
        return self.finding(
            _place(event),
            "after this evaluation the training steps run in evaluation mode: dropout is off, and batch norm uses its "
            "running statistics",
            "call train() on the model again before the next training step",
            (
                (event.switched, "evaluation mode is switched on here"),
                (event.backward, "this backward call trains in evaluation mode"),
                (event.layer, "this layer runs in evaluation mode"),
                (event.back, "training mode was switched on here before"),
            ),
        )


def _place(event: LeftInEvaluation) -> Stack:
    """The line that switches evaluation mode on; the call of the evaluation where this is in the function that calls
    backward, or where that line is reached from several calls."""
    near = event.backward if event.callers > 1 else event.backward[:1]
    return in_function_of(event.switched, near) or event.switched


def _names_mode(stack: Stack) -> bool:
    """Whether the call of functional dropout says in which mode it is; also where its source is not known."""
    call = syntax.call(stack[0], _DROPOUTS) if stack else None
    return call is None or len(call.args) > _POSITION or any(word.arg in ("training", None) for word in call.keywords)
