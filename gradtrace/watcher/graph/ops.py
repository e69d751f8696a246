"""Every table of names of torch's operations, each by what its members have in common, and questions to a name.

There are two sorts of names. A node has the name of its type: `MulBackward0`. The number at its end counts the variants
of an operation in torch's derivatives.yaml: `MeanBackward0` is the mean of all elements, `MeanBackward1` the one along
some dimensions. A function has its `__name__`: `mul`, `__imul__`; where a table holds it bare, it is looked up by
`bare()`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache
from typing import Any

import torch
import torch.nn.functional as F


def _nodes(names: str, variants: int = 1) -> frozenset[str]:
    """`_nodes("Add Sub", 2)`: AddBackward0, AddBackward1, SubBackward0, SubBackward1."""
    return frozenset(f"{name}Backward{number}" for name in names.split() for number in range(variants))


def functions(names: Iterable[str], *homes: Any) -> tuple[Any, ...]:
    """The functions of these names; `homes` are what has them: by default torch and its tensors."""
    found = (getattr(home, name, None) for home in homes or (torch, torch.Tensor) for name in names)
    return tuple(one for one in found if one is not None)


# nodes: what hands values on, or puts them together

#: compute nothing, and save no tensor: using their node again is harmless. Variants: in place, and by dimensions
VIEWS = (
    _nodes(
        "Alias Diagonal Expand Permute ReshapeAlias Select Slice Split SplitWithSizes Unbind Unfold UnsafeView View "
        "ViewAsReal ViewAsComplex"
    )
    | _nodes("AsStrided T Transpose Unsqueeze", 2)
    | _nodes("Squeeze", 6)
)
#: hand on the values as they are, in another shape, copy or dtype
SAME_VALUES = VIEWS | _nodes("Clone ToCopy")
#: hand on the weights of an attention, or drop some of them
SAME_WEIGHTS = SAME_VALUES | _nodes("NativeDropout FusedDropout")
#: put several tensors together, each as it is
JOINS = _nodes("Stack Cat")
#: put a number of the user's own choice in place of values
FILLS = _nodes("MaskedFill", 2) | _nodes("MaskedScatter Fill")

# nodes: arithmetic

#: multiply each element with a factor, or divide it by one
FACTORS = _nodes("Mul Div")
#: of the operations on each element those that make the mean of all pairs the product of two means
SCALINGS = FACTORS | _nodes("Neg ToCopy")
#: do to each element the same
POINTWISE = _nodes(
    "Abs Add Clamp ClampMin Cosh Div Exp Expm1 Log Log1P LogSigmoid Maximum Minimum Mul Neg Pow Relu Rsub Sigmoid "
    "Softplus Sqrt Square Sub Tanh ToCopy Where",
    4,
)
#: what the terms of a loss are added up with. No views but that of `torch.stack`: one may take its number out of many
SUMS_OF_TERMS = _nodes("Add Sub Rsub Mul Div Neg Sum Mean Stack Cat Unsqueeze", 2)
#: the same where what is summed need not be single numbers
SUMS_OF_TENSORS = VIEWS | SUMS_OF_TERMS | _nodes("Where")
#: rise with each of their inputs: sums, means, and what selects or moves values
RISING_WITH_ALL = SAME_VALUES | JOINS | _nodes("Add Sum Mean Minimum Maximum", 2)
#: rise with their input, and are no sum of it
RISING = _nodes("Softplus Relu LogSigmoid Sigmoid Log Exp Tanh")
#: fall where their input rises
FALLING = _nodes("Neg") | {"RsubBackward1"}
#: what a difference and a quotient of equal tensors are
AT_REST = {"SubBackward0": 0.0, "DivBackward0": 1.0}
#: products: the inputs, each with the name under which the node saves the other one
PRODUCTS = {
    "MmBackward0": ((0, "mat2"), (1, "self")),
    "BmmBackward0": ((0, "mat2"), (1, "self")),
    "AddmmBackward0": ((1, "mat2"), (2, "mat1")),
    "MulBackward0": ((0, "other"), (1, "self")),
}
#: products of matrices
MATMULS = _nodes("Mm Bmm Addmm Baddbmm")
#: what `nn.Linear` computes of rows, without and with a bias
LINEAR_LAYERS = _nodes("Mm Addmm")

#: have a gradient of zero where what they measure is zero: a square, a norm, a distance
EVEN = _nodes("Pow Abs LinalgVectorNorm MseLoss SmoothL1Loss HuberLoss Dist") | _nodes("Norm", 4)
#: make zeros of zeros, and hand on their gradient times something
KEEPING_ZEROS = SAME_VALUES | SCALINGS | JOINS | _nodes("Sum Mean", 2)

# nodes: reductions and losses

#: make one number of all elements
FULL_REDUCTIONS = _nodes("Mean Sum")
#: of everything, and along dimensions
MEANS = _nodes("Mean", 2)
#: make one row of many, and what a user calls it
POOLINGS = {
    "MeanBackward1": "a mean",
    "SumBackward1": "a sum",
    "AmaxBackward0": "the maximum",
    "MaxBackward0": "the maximum",
}
#: losses that save the label they compare with
LABELLED = _nodes("BinaryCrossEntropy BinaryCrossEntropyWithLogits MseLoss SmoothL1Loss HuberLoss")
_LOSS = re.compile("Loss|KlDiv|CrossEntropy")
_REDUCTION = re.compile(f"^Mean|^Sum|{_LOSS.pattern}")
_COMPARISON = re.compile(f"^Sub|^Rsub|Dist|{_LOSS.pattern}")
_WITH_WEIGHT = re.compile("mm|Mm|Conv|Linear|Rnn")
_LAYER = re.compile("linear|conv|mm|matmul|lstm|gru|rnn|attention")

# nodes: probabilities

#: their results add up to one (or their exponentials do) along a dimension
SOFTMAXES = _nodes("Softmax LogSoftmax")
#: give probabilities, by the function that makes them
PROBABILITIES = {"SoftmaxBackward0": "softmax", "SigmoidBackward0": "sigmoid"}
#: the same, and their logarithms
NORMALIZED = PROBABILITIES | {"LogSoftmaxBackward0": "log_softmax"}
#: lie between probabilities and their logarithms, in `Categorical(probs)` as well
TO_LOGARITHMS = _nodes("Log Add Div") | {"ClampBackward1"}

# nodes: gradients that are zero, NaN or infinite

#: derivative zero everywhere: steps, and samples (torch/csrc/autograd, derivatives.yaml)
ZERO_SLOPE = _nodes("Sign Sgn Round Floor Ceil Trunc Normal Poisson Bernoulli", 4)
#: save values of which their backward uses the sign alone
SIGN_SAVED = _nodes("Relu")
#: normalize activations: where their gradient fails, the loss is NaN as well
NORMALIZATIONS = _nodes("NativeLayerNorm NativeBatchNorm NativeGroupNorm")
#: have no finite slope or value at some inputs, by the kind of these; the checks of the values are in faults/flaws.py
SINGULAR = {
    **dict.fromkeys(_nodes("Log Log2 Log10"), "logarithm"),
    **dict.fromkeys(_nodes("Log1P"), "logarithm of one more"),
    **dict.fromkeys(_nodes("Sqrt"), "root"),
    **dict.fromkeys(_nodes("Rsqrt Reciprocal"), "inverse"),
    **dict.fromkeys(_nodes("Pow", 2), "power"),
    **dict.fromkeys(_nodes("Div", 2) | _nodes("Addcdiv"), "quotient"),
    **dict.fromkeys(_nodes("Acos Asin"), "arc"),
    **dict.fromkeys(_nodes("Acosh"), "arc of cosh"),
    **dict.fromkeys(_nodes("Atan2"), "angle"),
    **dict.fromkeys(_nodes("Hypot"), "length"),
    **dict.fromkeys(_nodes("Erfinv Atanh"), "between -1 and 1"),
    **dict.fromkeys(_nodes("Logit"), "between 0 and 1"),
    **dict.fromkeys(SOFTMAXES, "row"),
    **dict.fromkeys(_nodes("Logsumexp"), "row of a sum"),
    **dict.fromkeys(
        _nodes(
            "ScaledDotProductFlashAttentionForCpu ScaledDotProductFlashAttention ScaledDotProductEfficientAttention"
        ),
        "row of an attention",
    ),
    **dict.fromkeys(_nodes("Std Var StdMean VarMean"), "spread"),
    **dict.fromkeys(_nodes("Exp Expm1 Exp2") | {"PowBackward2"}, "exponential"),
    **dict.fromkeys(NORMALIZATIONS, "normalization"),
    **dict.fromkeys(_nodes("WeightNormInterface"), "weight norm"),
    **dict.fromkeys(_nodes("Xlogy"), "product with a logarithm"),
    **dict.fromkeys(_nodes("CtcLoss"), "loss of sequences"),
}
#: have no finite slope at some matrices, by what these are; what the node saved does not show it
FRAGILE = {
    **dict.fromkeys(_nodes("LinalgEigh LinalgEig LinalgSvd"), "repeated"),
    **dict.fromkeys(
        _nodes("LinalgInvEx LinalgSolveEx LinalgDet LinalgSlogdet LinalgCholeskyEx LinalgQr LinalgPinv"), "singular"
    ),
}
#: multiply zero with infinity, or overflow, at some values; no check of the values is known
OVERFLOWING = _nodes("Norm", 2) | _nodes(
    "Logaddexp Logcumsumexp Lgamma LinalgVectorNorm Cdist Dist Sinh Cosh Cumprod Softplus BinaryCrossEntropy"
)
#: let no gradient through where they are saturated: how the names begin, since there are variants with bounds as tensors
_SATURATING = ("Relu", "Clamp", "Hardtanh", "Threshold", "Hardsigmoid")

#: in graphs of gradients: what the slope of a piecewise linear operation depends on, by node and input, has a gradient of
#: zero; with what a user calls the operation
PIECEWISE = {
    "ThresholdBackwardBackward0": (1, "relu"),
    "LeakyReluBackwardBackward0": (1, "leaky_relu"),
    "RreluWithNoiseBackwardBackward0": (1, "rrelu"),
    "HardtanhBackwardBackward0": (1, "hardtanh"),
    "HardshrinkBackwardBackward0": (1, "hardshrink"),
    "SoftshrinkBackwardBackward0": (1, "softshrink"),
    "MaxPool2DWithIndicesBackwardBackward0": (1, "max_pool"),
    "SgnBackward0": (0, "abs"),
    "SignBackward0": (0, "sign"),
}
#: such operations themselves
PIECEWISE_LINEAR = _nodes(
    "Relu Threshold LeakyRelu RreluWithNoise Hardtanh Hardshrink Softshrink MaxPool2DWithIndices Abs Sign"
)

#: what a user calls an operation that has another name than its node
_SPOKEN = {"ToCopyBackward0": "to()", "SliceBackward0": "slicing", "SelectBackward0": "indexing"}

# functions, by their bare names

#: add tensors
SUMS = frozenset("add radd iadd".split())
#: put tensors, or single numbers, side by side, as terms to be summed
STACKS = frozenset("stack hstack".split())
#: put a term into a loss
ADDING = SUMS | STACKS | frozenset("sub rsub isub cat".split())
#: make of a tensor its size, or its distance from something
MEASURES = frozenset(
    "abs amax amin huber_loss l1_loss linalg_norm linalg_vector_norm logsumexp max mean min mse_loss norm pow "
    "smooth_l1_loss square std sum var vector_norm".split()
)
#: what such a size or distance is computed with
STEPS_OF_MEASURES = MEASURES | frozenset(
    "add cat clamp clamp_max clamp_min contiguous cos div double expand flatten float getitem index_select mul narrow neg "
    "permute radd relu reshape rmul rsub select sin sqrt squeeze stack sub t to transpose truediv unsqueeze view".split()
)
#: comparisons, and the signs for them
COMPARISONS = {"gt": ">", "lt": "<", "ge": ">=", "le": "<=", "eq": "==", "ne": "!="}

# functions, by their whole names

#: under no_grad their result still requires grad: a leaf, whose gradient goes no further
VIEW_FUNCTIONS = tuple(
    "expand expand_as flatten narrow permute reshape select squeeze t transpose unsqueeze view".split()
)
#: make a column of a row
COLUMN_FUNCTIONS = tuple("unsqueeze view reshape __getitem__ unsqueeze_".split())
#: save what is given to them
SAVING_FUNCTIONS = (
    *"linear conv1d conv2d conv3d embedding embedding_bag bilinear scaled_dot_product_attention".split(),
    *"mse_loss l1_loss smooth_l1_loss huber_loss cross_entropy nll_loss binary_cross_entropy".split(),
    *"binary_cross_entropy_with_logits kl_div layer_norm batch_norm group_norm instance_norm".split(),
    *"matmul __matmul__ __rmatmul__ mm bmm mv dot addmm baddbmm einsum outer mul multiply div pow".split(),
    *"__mul__ __rmul__ __truediv__ __pow__ where lstm gru rnn_tanh rnn_relu".split(),
)
#: give NaN or infinity for some finite numbers; those with an underscore at the end, too
NON_FINITE_FUNCTIONS = tuple(
    f"{name}{ending}"
    for name in (
        "div true_divide __truediv__ __itruediv__ __rtruediv__ __rdiv__ reciprocal rsqrt sqrt log std var mean"
    ).split()
    for ending in ("", "_")
)
#: write to the first argument
_IN_PLACE_OPERATORS = frozenset(
    f"__i{name}__" for name in "add sub mul truediv floordiv div mod pow and or xor lshift rshift".split()
)
#: end as functions do that write, and change no values
_NO_WRITE = frozenset("requires_grad_ detach_ share_memory_ rename_ retain_grad_".split())

# functions, themselves

#: softmax and its logarithm
SOFTMAX_FUNCTIONS = functions(("softmax", "log_softmax"), F, torch, torch.Tensor)
#: subtract
DIFFERENCE_FUNCTIONS = functions("sub subtract".split())
#: write a sum to the first argument
SUMMING_FUNCTIONS = functions("add_ sub_ copy_ __iadd__ __isub__".split(), torch.Tensor)
#: write other values to the first argument: a decay, a proximal step, a limit
CHANGING_FUNCTIONS = functions(
    "mul_ div_ sub_ add_ copy_ clamp_ lerp_ addcmul_ masked_fill_ __imul__ __setitem__".split(), torch.Tensor
) + functions("_foreach_mul_ _foreach_sub_ _foreach_add_".split(), torch)
#: compare elements, and broadcast
DISTANCE_FUNCTIONS = functions("mse_loss l1_loss smooth_l1_loss huber_loss".split(), F)
#: recurrent networks of many steps, and what a user calls their modules
RECURRENT_FUNCTIONS = {torch.lstm: "LSTM", torch.gru: "GRU", torch.rnn_tanh: "RNN", torch.rnn_relu: "RNN"}


def is_reduction(name: str) -> bool:
    """Whether a node makes a single number of many: a mean, a sum, or a loss."""
    return _REDUCTION.search(name) is not None


def is_comparison(name: str) -> bool:
    """Whether a node takes the distance of its inputs: a difference, or a loss."""
    return _COMPARISON.search(name) is not None


def computes_with_weight(name: str) -> bool:
    """Whether a weight computes with data in a node; a row looked up for a label is none."""
    return _WITH_WEIGHT.search(name) is not None


def is_layer(function: str) -> bool:
    """Whether a weight computes with data in a function: `linear()`, `conv2d()`, `lstm()`."""
    return _LAYER.search(function) is not None


def is_saturating(name: str) -> bool:
    """Whether a node has results at which it lets no gradient through."""
    return name.startswith(_SATURATING)


def spoken(name: str) -> str:
    """What a user calls the operation of a node: `mul` for MulBackward0."""
    return _SPOKEN.get(name) or name.partition("Backward")[0].lower() or name


def bare(function: Any) -> str:
    """`add` for `add_` and `__add__`."""
    name: str = getattr(function, "__name__", None) or str(function)
    return name.strip("_")


@lru_cache(maxsize=1024)
def writes_in_place(function: str) -> bool:
    """Whether a function of this name writes to its first argument: `add_`, `__iadd__`, but not `__add__`."""
    if function.startswith("__"):
        return function in _IN_PLACE_OPERATORS or function == "__setitem__"
    return function.endswith("_") and function not in _NO_WRITE
