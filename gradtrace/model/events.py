"""What torch did, as plain values: the only thing rules see.

Every event is complete in itself and holds no tensor, so that a rule can be tested on events written by hand.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TypeAlias

from gradtrace.model.ranks import Job, RankFact
from gradtrace.model.site import Held, Stack
from gradtrace.model.truths import RunFact


@dataclass(frozen=True, slots=True)
class Cut:
    """Where a path to a leaf ended: `op` at `stack` gave a tensor that requires no grad from one that did.

    `why` is "detached" (detach, .data, numpy, item), "no_grad" (grad mode was off), "not differentiable" (argmax, a
    comparison, an integer cast), "copied" (torch.tensor(t)), "written" (p.data.copy_(t)), "constant gradient"
    (autograd.grad without create_graph), "frozen" (a leaf was set not to require grad) or "unasked" (an optimizer was
    given a tensor that never required grad).
    """

    op: str
    why: str
    stack: Stack
    #: with "no_grad": where gradients were switched off, as far as a call did that
    switched: Stack = ()
    #: what was cut off: the user's expression for it, its node (`AddmmBackward0`, "leaf") and its shape, where known
    source: str | None = None
    behind: str = ""
    shape: tuple[int, ...] | None = None
    #: no optimizer holds what it was cut off from, though there is one: a target network
    aside: bool = False


@dataclass(slots=True)
class Contribution:
    """One backward call that accumulated into a leaf's .grad. `call` is its number."""

    call: int
    stack: Stack
    #: the user's expression for the root: `loss`
    root: str
    #: number of the root's node (sequence number), to see whether the same root was used twice; -1 without a graph
    root_node: int
    #: the root was given a gradient of the caller's own: `y.backward(v)`
    with_gradient: bool = False
    #: which of its node's outputs the root is: rows of one `unbind` have one node
    root_output: int = 0
    #: all modules that hold the leaves were in evaluation mode
    evaluating: bool = False
    #: the root was multiplied by a GradScaler's scale
    scaled: bool = False


@dataclass(frozen=True, slots=True)
class Owners:
    """Keys of the optimizers that hold the leaves which a re-entered graph and its two users lead to."""

    #: below the old operation; elsewhere in the earlier call's graph; in the new part of this call's graph
    old: frozenset[int] = frozenset()
    earlier: frozenset[int] = frozenset()
    new: frozenset[int] = frozenset()
    #: those that made a step between the two calls
    stepped: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True)
class Reentry:
    """This backward call entered a graph that an earlier call has run through."""

    #: number and place of the earlier call, what it was ("backward", "grad"), and the user's expression for its root
    call: int
    call_stack: Stack
    call_request: str
    call_root: str
    #: the earlier call freed it (no retain_graph)
    freed: bool
    #: something that the old operation, or one below it, had saved is gone
    saved_lost: bool
    #: the operation of the old graph that was entered, its number, where it was made, and where the earlier call's
    #: graph used it
    op: str
    node: int
    built: Stack
    used: Stack
    #: how many frames of `built`, from the outermost, have run again since the earlier call
    rerun: int
    #: where the operation was made that took it in; empty where the root itself is old
    entry: Stack
    #: that operation was made after the earlier call
    entered_later: bool
    #: kinds of operations between the root and the old operation, at most a few
    through: frozenset[str]
    #: the new part of the graph has leaves of its own
    own_leaves: bool
    #: the old operation computes nothing: a view, whose values stay right when it is used again
    view: bool
    owners: Owners = Owners()
    #: what was built was put together from several tensors: where the first of these was made
    gathered: Stack = ()

    @property
    def rebuilt(self) -> bool:
        """The operation has been made again since: this one is a value of the last iteration."""
        return bool(self.built) and self.rerun == len(self.built)


@dataclass(slots=True)
class Backward:
    """One call of `backward()` or `autograd.grad()`, after it ended."""

    number: int
    #: "backward" or "grad"
    request: str
    stack: Stack
    root: str
    root_node: int
    retain_graph: bool
    create_graph: bool
    #: nodes run through, as far as they were counted
    nodes: int
    #: numbers of the earlier calls whose graph (or whose created gradient graph) this one entered
    entered: tuple[int, ...] = ()
    #: numbers of earlier retaining calls whose graph was still alive when this one began
    held: tuple[int, ...] = ()
    reentries: tuple[Reentry, ...] = ()
    #: names of leaves into whose .grad this call and an earlier call from the same root both accumulated
    repeated: tuple[str, ...] = ()
    #: the earlier call of `repeated`
    repeated_stack: Stack = ()
    #: the error it raised, "RuntimeError: message", its first line
    error: str | None = None
    #: with the error "does not require grad": what cut the paths, nearest first
    cuts: tuple[Cut, ...] = ()
    #: where that is not known: what may have been the cause, the likeliest first
    suspects: tuple[Cut, ...] = ()
    #: all leaves reached were made of values that cuts had left without a graph: `torch.tensor(loss,
    #: requires_grad=True)`
    rewrapped: tuple[Cut, ...] = ()

    @property
    def ordinary(self) -> bool:
        """Whether there is nothing to it: one of its place says as much as many."""
        return not (
            self.retain_graph
            or self.create_graph
            or self.error
            or self.reentries
            or self.entered
            or self.held
            or self.repeated
            or self.cuts
            or self.suspects
            or self.rewrapped
        )


@dataclass(slots=True)
class Use:
    """Leaves whose .grad holds the sum of the same backward calls at a step."""

    contributions: tuple[Contribution, ...]
    #: how many of the contributions (the first ones) an earlier step had used already, and where that step was
    used: int
    used_stack: Stack
    #: names of the leaves, at most a few
    leaves: tuple[str, ...]
    #: how many leaves
    count: int


@dataclass(slots=True)
class Step:
    """A step of an optimizer, or a hand-written update of one leaf (`optimizer` is empty then), after it ended."""

    number: int
    #: the class, e.g. `Adam`, and a key that identifies the optimizer
    optimizer: str
    key: int
    stack: Stack
    uses: tuple[Use, ...]
    #: there are none, yet gradients: of a backward call within another one, as a reentrant checkpoint makes it
    unknown: bool = False
    #: how often the closure was evaluated, and backward calls within the step
    evaluations: int = 0
    calls_inside: int = 0
    #: numbers of retaining calls whose graph was still alive
    held: tuple[int, ...] = ()

    @property
    def ordinary(self) -> bool:
        """Whether there is nothing to it, each gradient coming from one call alone: one of its place says as much as
        many."""
        if not self.optimizer or not self.uses or self.evaluations or self.held:
            return False
        return all(len(use.contributions) == 1 and not use.used for use in self.uses)


@dataclass(frozen=True, slots=True)
class FrozenMoved:
    """Parameters that were set not to require grad, but kept the gradient they had, and that steps still move."""

    names: tuple[str, ...]
    count: int
    optimizer: str
    #: where they were frozen, and the step
    stack: Stack
    step: Stack


@dataclass(frozen=True, slots=True)
class Growth:
    """A variable or container of the user's holds more of old graphs each time it is looked at."""

    #: `self.losses[]`, `total`: `[]` stands for any element
    holder: str
    #: files of the user's code that were running
    files: tuple[str, ...]
    #: tensors held that have a graph, nodes of theirs and bytes that these nodes saved, as far as they were counted
    tensors: int
    nodes: int
    bytes: int
    #: nodes more with each optimizer step; 0 where it grew between steps
    per_step: int
    #: where the newest of the tensors was made
    made: Stack = ()


@dataclass(frozen=True, slots=True)
class UnusedGraph:
    """Forward passes of a module in evaluation mode, one after the other, that no backward call ever ran through."""

    stack: Stack
    #: the module's class, how many passes in a row, and how many nodes each of them made
    kind: str
    passes: int
    nodes: int


@dataclass(frozen=True, slots=True)
class HooksGrew:
    """The number of hooks on one tensor or module grew all the time."""

    holder: str
    #: `register_hook`, `register_forward_hook` ...
    kind: str
    hooks: int
    stack: Stack
    files: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Overwritten:
    """A backward call met a tensor that an operation had saved for it and that was written to since."""

    #: what wrote: "in place", "inplace=True", "max_norm", "out=", "step", ".data", "numpy"
    how: str
    #: where it was written to, the first time after it was saved; empty where that was not seen
    written: Stack
    #: how many writes there were since, as far as they were seen
    writes: int
    #: the node that saved it, its name for it (`self`, `weight`, `result`), and where the operation was made
    op: str
    saved: str
    built: Stack
    #: the user's name for the tensor, if it has one, and its shape
    name: str
    shape: tuple[int, ...]
    #: the backward call
    stack: Stack
    root: str
    #: gradients were off for the write
    no_grad: bool = False
    #: the error that torch raised over it; None where torch does not notice and the gradient is silently wrong
    error: str | None = None
    #: for "numpy": the user's files
    files: tuple[str, ...] = ()
    #: for "inplace=True": what holds the module that wrote
    module: Held | None = None
    #: for "step" and ".data": where what was made after it used what was made before, if the operation has run again since
    entry: Stack = ()
    #: for "numpy": where the tensor was handed to NumPy, if that was after the operation
    lent: Stack = ()


@dataclass(frozen=True, slots=True)
class Refused:
    """An in-place write that autograd refused with an error."""

    #: of what was written to: "leaf", "view of a leaf", "one of several views", "view made under no_grad"
    target: str
    #: the function, e.g. `add_`
    op: str
    stack: Stack
    error: str
    #: the user's name for the leaf, if it has one
    name: str = ""
    is_parameter: bool = False
    #: where the view was made
    viewed: Stack = ()


@dataclass(frozen=True, slots=True)
class NonFinite:
    """A backward call brought NaN or infinite values to leaves."""

    #: the backward call
    stack: Stack
    root: str
    request: str
    #: what came to the leaves, "NaN" or "Inf", and names of some of them
    value: str
    leaves: tuple[str, ...]
    #: the node to blame (`SqrtBackward0`), what was wrong there ("zero", "row", "overflow", ...) and where it was made
    op: str
    kind: str
    made: Stack
    #: the node at which finite gradients became NaN or infinite, and where it was made
    born_op: str = ""
    born: Stack = ()
    #: the value that backward was called on was not finite already
    lost: bool = False
    #: a GradScaler looks for such gradients and skips the step
    scaled: bool = False
    #: the script ended by this error over them, of anomaly mode or of clipping
    error: str | None = None


@dataclass(frozen=True, slots=True)
class Misfit:
    """A gradient had the wrong shape, and torch raised an error."""

    #: "nonscalar" (none was given for a tensor of many elements), "argument" (of backward or grad), "assigned" (to
    #: .grad), "function" (returned by a Function's backward), "count" (too many or too few of them returned)
    #: or "hook" (returned by a hook of a tensor)
    kind: str
    #: the call, and the user's expression for its root
    stack: Stack
    root: str
    error: str
    #: which one, and shapes (or numbers) as text
    index: int
    given: str
    wanted: str
    #: the node, or the hook; the `def` of its backward if it is of a custom Function, or of the hook; and where it (or
    #: the root) was made, or the hook registered
    op: str = ""
    backward: Stack = ()
    made: Stack = ()


@dataclass(frozen=True, slots=True)
class DoubleSoftmax:
    """A backward call ran through a loss that used what `first` gave, and applied `second` to it."""

    #: "softmax", "sigmoid" or "log_softmax"
    first: str
    #: "softmax" or "sigmoid"; "logarithm" where the loss wanted logarithms
    second: str
    #: the loss function
    loss: str
    #: where `first` was applied, and the loss
    made: Stack
    stack: Stack
    #: what holds the module in an nn.Sequential that applied `first`
    module: Held | None = None


@dataclass(frozen=True, slots=True)
class Broadcast:
    """A backward call ran through an operation whose two sides, of as many elements each, were broadcast to more."""

    op: str
    one: tuple[int, ...]
    other: tuple[int, ...]
    result: tuple[int, ...]
    #: the operation itself made one number of it
    reduced: bool
    stack: Stack


@dataclass(frozen=True, slots=True)
class GradMissed:
    """The user's code read .grad of a tensor through which a backward call ran, but which is no leaf and keeps none."""

    #: where it was read
    stack: Stack
    #: the operation that made it, and where
    op: str
    made: Stack
    #: it was made from a leaf that no code holds: the result was taken for the leaf
    stray_leaf: bool = False
    #: the error by which the script ended over the None that it got, set when it has ended
    error: str | None = None


@dataclass(frozen=True, slots=True)
class GradMissing:
    """The script ended by an error over a gradient that is None, or over a tensor that can have none.

    `kind` is "early" (no backward call was made before), "unreached" (no backward call reached the leaf), "cut" (the
    path from it to the loss ends at `cut`), "cleared" (it had a gradient, which was cleared since), "plain" (it does not
    require grad) or "inference" (an operation was given a tensor that was made in inference mode, at `made`).
    """

    kind: str
    #: where the gradient was read, or the operation failed
    stack: Stack
    #: the user's name for the leaf, where known
    name: str
    error: str
    cleared: Stack = ()
    cut: Cut | None = None
    made: Stack = ()
    op: str = ""


@dataclass(frozen=True, slots=True)
class UnusedInput:
    """autograd.grad was called with respect to a tensor from which the outputs were not computed."""

    stack: Stack
    #: which of so many inputs it is
    index: int
    count: int
    #: the operation that made it, and where; empty for a leaf
    op: str
    made: Stack
    #: it was made from something that the outputs were computed from as well
    beside: bool
    #: where it was set to require grad, if the outputs were computed before that
    required: Stack
    #: what cut the path from it to the outputs
    cut: Cut | None
    #: a leaf's name, where known
    name: str
    #: the error that this raised, or by which the script ended over the None that it got
    error: str | None = None

    def with_error(self, error: str) -> UnusedInput:
        """The same, now that the script has ended by this error."""
        return replace(self, error=error)


@dataclass(frozen=True, slots=True)
class UnusedLoss:
    """A loss was computed in each iteration, and no backward call ever ran through it.

    `kind` is "overwritten" (another loss, at `where`, is assigned to its variable before anything used it), "sum" (a part
    of it is backpropagated alone; `where` is the part that is not), "idle" (parameters that it depends on never received
    a gradient), "unread" (nothing used its value) or "starved" (each step, at `where`, of an optimizer that holds
    parameters it depends on found no gradient).
    """

    kind: str
    stack: Stack
    #: the backward call that passed it by
    backward: Stack
    where: Stack
    #: the parameters without a gradient
    names: tuple[str, ...]
    #: its value was read: printed, for one
    read: bool
    times: int
    #: there was no step: a GradScaler raised this error because it found no gradients
    error: str | None = None


@dataclass(frozen=True, slots=True)
class DeadTerm:
    """A term of a loss gave nothing to parameters of the optimizers that used its gradients, though it depends on them.

    `kind` is "term" (a part with a graph), "constant" (a number that was added) or "rebuilt" (a leaf made of a number).
    """

    kind: str
    stack: Stack
    backward: Stack
    root: str
    cut: Cut
    #: it reaches other parameters of these optimizers
    alive: bool
    #: what gets nothing
    names: tuple[str, ...]
    count: int
    optimizers: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ComparedWithItself:
    """A term of a loss, or of a gradient, is the difference between a tensor and itself: both sides lie in one memory."""

    #: the comparison, and where its result was added to the loss or the gradient
    stack: Stack
    entered: Stack
    #: the backward call and its root; empty where the result was added to gradients by hand
    backward: Stack
    root: str
    #: the parameters behind both sides; none where they are no parameters
    names: tuple[str, ...]
    count: int
    #: both sides are a copy of the parameters
    copied: bool
    #: where the reference was taken of the parameter, without a copy
    taken: Stack
    #: iterations in which it was used, each time with the same memory on both sides
    times: int


@dataclass(frozen=True, slots=True)
class SparseRefused:
    """An optimizer, or the clipping of gradients, raised an error over the layout of gradients.

    `kind` is "sparse" (the optimizer takes dense ones alone), "decay" (sparse ones have no weight decay), "clip" (the norm
    of sparse ones cannot be taken) or "dense" (SparseAdam takes sparse ones alone).
    """

    kind: str
    stack: Stack
    optimizer: str
    optimizer_stack: Stack
    #: the parameters
    names: tuple[str, ...]
    count: int
    #: where their module was made, or where they were looked up, and what says there that gradients are sparse
    made: Stack
    option: str
    backward: Stack
    error: str


@dataclass(frozen=True, slots=True)
class ScalerMisused:
    """A method of a GradScaler raised an error, since the methods were called in the wrong order.

    `kind` is "unscaled" (unscale_() twice before update()), "after step" (unscale_() after step()), "stepped" (step()
    twice before update()), "empty" (the optimizer has no gradients to check), "unchecked" (update() before step()),
    "unscaled loss" (step() or update() before any scale()), "half" (the parameters are float16) or "closure".
    """

    kind: str
    stack: Stack
    error: str
    optimizer: str = ""
    optimizer_stack: Stack = ()
    #: the first unscale_(), or the step that came before
    earlier: Stack = ()
    #: the last backward call; whether it came after `earlier`
    backward: Stack = ()
    between: bool = False
    #: no parameter of the optimizer requires grad
    frozen: bool = False
    #: what the last backward call gave gradients to; with "half", parameters, and where they were converted
    names: tuple[str, ...] = ()
    count: int = 0
    made: Stack = ()


@dataclass(frozen=True, slots=True)
class CallRefused:
    """The script ended by an error that torch raised over a tensor's gradient: it requires grad, requires none, or is no
    leaf. `kind` says which, as the rule names them."""

    kind: str
    stack: Stack
    error: str
    #: where the tensor was made, and what cut its path, where that is known
    made: Stack = ()
    cut: Cut | None = None


@dataclass(frozen=True, slots=True)
class AttachedTarget:
    """Both sides of a loss require grad and reach the same parameters, and one is data plus a discounted value."""

    #: where the target is added up, the loss, and its function
    stack: Stack
    loss: Stack
    function: str


@dataclass(frozen=True, slots=True)
class NotOptimizable:
    """An optimizer refused a tensor that is no leaf."""

    optimizer: str
    #: where the optimizer was given it
    stack: Stack
    op: str
    made: Stack
    shape: tuple[int, ...]
    error: str


@dataclass(frozen=True, slots=True)
class ParameterReplaced:
    """A module refused a tensor in the place of its parameter."""

    module: str
    name: str
    stack: Stack
    #: where the parameter was made
    born: Stack
    error: str


@dataclass(frozen=True, slots=True)
class Unreached:
    """Parameters of an optimizer that never received a gradient in the whole run, all for the same reason.

    `why` is "unused" (no operation took them in), "no_grad" (only with gradients off), "cut" (a path from them ended at
    `cut`), "withheld" (the backward of a custom Function, at `born`, gives no gradient for them), or "ignored" (what was
    computed from them went into no loss).
    """

    why: str
    #: the user's names, a few of them, and how many parameters
    names: tuple[str, ...]
    count: int
    optimizer: str
    optimizer_stack: Stack
    steps: int
    #: where the module that holds them was made, and its class
    born: Stack
    kind: str
    #: the attribute or variable that holds them, and the files in which it may be used
    attribute: str = ""
    files: tuple[str, ...] = ()
    #: where they were used
    used: Stack = ()
    cut: Cut | None = None
    #: no parameter of the optimizer received a gradient
    all: bool = False
    #: a sign that this is meant to be: "picked" (others of the same list are used), "library" (a library made the
    #: module), "evaluating" (it is in evaluation mode), "loaded" (a state was loaded into it), "compared" (what is computed
    #: from it is a constant that is only compared with what is trained)
    excuse: str = ""
    #: what was cut off is a term of a straight-through sum: `x + (y - x).detach()`
    straight_through: bool = False


@dataclass(frozen=True, slots=True)
class GradientLost:
    """Parameters of an optimizer that backward calls of one place reached, and that none reached any more once `cut` was
    made: it took their value into the loss as a constant."""

    #: the user's names, a few of them, and how many parameters
    names: tuple[str, ...]
    count: int
    optimizer: str
    #: steps of the optimizer since, up to the end of the run
    steps: int
    backward: Stack
    cut: Cut


@dataclass(frozen=True, slots=True)
class Unoptimized:
    """Parameters that receive gradients in iteration after iteration, but are in no optimizer.

    `why` is "forward" (made again within each forward), "passing" (made again at each call of a function, with a module
    of class `kind` or by themselves), "replaced" (another took its place, again and again), "hidden" (held by
    a plain list, dict or object, so that `parameters()` leaves them out), "plain" (a tensor in an attribute of a module,
    and no Parameter), "converted" (the leaf was replaced by the result of an operation), "late" (made after the
    optimizer), "copied" (the optimizer holds the parameters of another copy), "alias" (it holds tensors with their
    values that require no grad), "empty group" (the optimizer was given a group without parameters), "unfrozen" (frozen
    when the optimizer was made), "left out" or "part" (left out, while the optimizer holds other parameters of the same
    model).
    """

    why: str
    names: tuple[str, ...]
    count: int
    iterations: int
    #: where they were made (for "converted": the operation)
    born: Stack
    kind: str
    #: the statement that assigns the container or the attribute, for "hidden" and "plain"
    holder: Stack
    container: str
    optimizer: str
    optimizer_stack: Stack
    backward: Stack


@dataclass(frozen=True, slots=True)
class FlatGradient:
    """Parameters whose gradient was exactly zero each time, since all paths to them pass through a flat operation."""

    names: tuple[str, ...]
    count: int
    #: the operation (`sign`), where it is, and how often the gradient was looked at
    op: str
    stack: Stack
    iterations: int
    backward: Stack
    #: the operation is flat only where it is saturated: a ReLU, a clamp
    saturated: bool = False
    #: it limits a term of the loss: sums and factors alone lie between it and the root
    term: bool = False
    #: the operation multiplies them with each other, and all of them are zeros
    product: bool = False
    #: they had gradients before
    late: bool = False
    #: the operation is a difference or a quotient of two equal tensors, which both depend on them
    cancels: bool = False
    #: for a product of zeros: where these were made, one place for each parameter
    zeroed: tuple[Stack, ...] = ()


@dataclass(frozen=True, slots=True)
class FlatDerivative:
    """A derivative of a gradient was exactly zero each time, since all paths to its inputs pass through an operation with
    a constant slope, or a piecewise constant one."""

    #: the call of autograd.grad, and the user's expression of what was differentiated
    stack: Stack
    root: str
    #: the operation (`relu`), and where it is
    op: str
    made: Stack
    times: int


@dataclass(frozen=True, slots=True)
class ConstantGradient:
    """A gradient that is a constant was made a term of a loss, or a loss of its own."""

    #: "grad" (autograd.grad) or "backward" (read from .grad)
    request: str
    #: where it was taken, the user's expression of what the gradient was taken of
    stack: Stack
    root: str
    #: where it entered the loss
    entered: Stack
    #: the backward call on that loss
    backward: Stack
    loss: str
    error: str | None = None


@dataclass(frozen=True, slots=True)
class MixedBatch:
    """A backward call ran through a computation along the wrong dimension, which mixes the samples of a batch."""

    #: "softmax" (its weights are summed over another dimension), "rows" (one entry of each row is read of its result),
    #: "sequence", "sequence, batch first", "loaded" (the sequence came out of a DataLoader), or "reshaped"
    kind: str
    #: "softmax", "LSTM", "GRU", "RNN" or "attention", or what was reshaped, and the shape that went in
    op: str
    shape: tuple[int, ...]
    stack: Stack
    #: what was read as if the batch were the steps of a sequence ("the last step", "a mean over the steps"), and where
    read: str = ""
    taken: Stack = ()
    #: the shape that came out
    result: tuple[int, ...] = ()


@dataclass(slots=True)
class Given:
    """What one backward call added to the gradients of one optimizer's leaves, as seen from that optimizer."""

    call: int
    stack: Stack
    root: str
    #: some of the leaves' names, and how many leaves
    leaves: tuple[str, ...]
    count: int
    #: other optimizers into whose leaves it put gradients as well
    foreign: frozenset[int] = frozenset()
    #: others of these that have used theirs in a step already, with the number of the last backward call by then
    taken: tuple[tuple[int, int], ...] = ()
    #: the user's code has looked at gradients of this call; at that of a leaf in no optimizer, an input for one
    read: bool = False
    input_read: bool = False
    #: a GradScaler has looked for infinite values in it, and skips the step where it finds some
    checked: bool = False
    #: it is multiplied by a GradScaler's scale, which nothing has removed
    scaled: bool = False
    #: the user's code listens to gradients of this call: hooks, retain_grad
    heard: bool = False
    #: the user's code has put a gradient of its own in the place of it, without looking at it
    replaced: bool = False
    #: where these leaves were first used in the graph of the call
    entry: Stack = ()
    #: what is computed from these leaves goes into operations with the others' leaves, or is multiplied with their
    #: results
    feeds: bool = False
    weighs: bool = False
    #: the loss is a plain sum of what these leaves compute last, which has no minimum
    outright: bool = False
    #: where it drives what these leaves and the others' compute together: "down", "up", "toward 1.0", "away from 0.0"; and
    #: whether it also drives what the others' compute without these
    goals: tuple[str, ...] = ()
    apart: bool = False
    #: other optimizers, of whose leaves a value entered an operation with these leaves as a constant
    kept_from: frozenset[int] = frozenset()
    #: for a gradient that was cleared: where, and whether some other step had used the call by then
    cleared: Stack = ()
    elsewhere: bool = False


@dataclass(slots=True)
class OptimizerStep:
    """An optimizer made a step: which backward calls its gradients came from, and which had been cleared unused."""

    optimizer: str
    key: int
    stack: Stack
    #: the calls that this step uses for the first time
    given: tuple[Given, ...]
    #: the calls of which everything in its leaves was cleared since its last step, before any step used it
    lost: tuple[Given, ...]
    #: the sum also holds what this optimizer had used before
    stale: bool = False
    #: its leaves hold no other gradients than those that it used in its last step, made there
    again: Stack = ()
    #: no leaf of it has a gradient; none of them requires grad, and where they were frozen
    empty: bool = False
    frozen: bool = False
    frozen_at: Stack = ()
    #: backward calls since its last step
    calls: int = 0
    #: how many steps in a row this stands for: those that are fed alike are reported once more when that ends
    times: int = 1
    #: there was no step: a GradScaler raised this error because it found no gradients to unscale
    error: str | None = None


@dataclass(frozen=True, slots=True)
class Unstepped:
    """An optimizer made no step in the whole run, though its leaves received gradients."""

    optimizer: str
    #: the line of calls that gave most to it, and how many calls there were
    given: Given
    calls: int
    #: some other optimizer has used gradients of these calls
    taken: bool
    #: steps of other optimizers after its first gradients
    others: int
    #: how often its gradients were cleared
    clears: int


@dataclass(frozen=True, slots=True)
class Clipped:
    """Gradients were clipped or scaled, and what became of them is known.

    `fate` is "used" (by a step, or by the user's code), "never" (these parameters had no gradient so far), "empty"
    (they have none at the moment), "none" (no parameters were given), "spent" (steps had used all of them
    already), "cleared" (all of them were cleared before a step used them) or "scaled" (a GradScaler removed its scale
    only afterwards).
    """

    op: str
    stack: Stack
    fate: str
    #: the step that had used them, the clearing, or the place where the scale was removed
    then: Stack
    leaves: tuple[str, ...]
    count: int
    #: gradients of leaves in no optimizer among them, which sum several backward calls that no code cleared: the last of
    #: these calls, and how many they are
    strays: Given | None = None
    summed: int = 0


@dataclass(frozen=True, slots=True)
class Collected:
    """At the end of the run, parameters in no optimizer hold the sum of many calls' gradients, never read nor
    cleared."""

    given: Given
    calls: int
    #: they have the shapes of parameters that an optimizer holds: a copy, a target network
    twin: bool
    #: their values changed in the meantime: the code keeps them up with the others
    written: bool
    #: the step that used the other gradients of these calls
    optimizer: str
    step: Stack
    #: what they make of data alone is compared with what is trained: a random target, a teacher
    compared: bool = False


@dataclass(frozen=True, slots=True)
class SharedBackup:
    """Parameters were set to values that had been taken of them without a copy: their own, whatever was written to them in
    between."""

    #: what took the values: "state_dict()", ".data" or "detach()", and where
    op: str
    stack: Stack
    #: where they were put back
    restored: Stack
    #: how many parameters, of those that were written to in between
    count: int
    #: the step of an optimizer that wrote to them last; empty where other code wrote
    step: Stack = ()


@dataclass(frozen=True, slots=True)
class End:
    """The run is over."""

    #: numbers of retaining calls whose graph was still alive
    held: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Unseen:
    """From here on something is not watched: rules that need it do not judge."""

    #: names of kinds of events, or of what `Needs.abilities` names; empty where nothing is watched any more
    what: tuple[str, ...]
    #: "needs saved tensor values (torch >= 2.13)"
    why: str
    #: because of an internal error
    failed: bool = False


#: What happened in one process: what a recording holds.
Recorded: TypeAlias = (
    GradMissed
    | GradMissing
    | UnusedInput
    | UnusedLoss
    | DeadTerm
    | ComparedWithItself
    | SparseRefused
    | ScalerMisused
    | CallRefused
    | AttachedTarget
    | NotOptimizable
    | ParameterReplaced
    | Unreached
    | GradientLost
    | Unoptimized
    | FlatGradient
    | FlatDerivative
    | ConstantGradient
    | Backward
    | Step
    | Overwritten
    | Refused
    | End
    | Growth
    | HooksGrew
    | FrozenMoved
    | UnusedGraph
    | NonFinite
    | Misfit
    | DoubleSoftmax
    | Broadcast
    | MixedBatch
    | OptimizerStep
    | Unstepped
    | Clipped
    | Collected
    | SharedBackup
    | RunFact
    | RankFact
    | Unseen
)

#: What rules see: what happened in one process, and all ranks of a job side by side.
Event: TypeAlias = Recorded | Job
