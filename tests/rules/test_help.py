"""The fix that a finding's help names, typed into the script: the finding is gone, and nothing takes its place."""

from __future__ import annotations

from typing import NamedTuple

import pytest

from tests.casefiles import case
from tests.rules.conftest import Checker


class Fix(NamedTuple):
    """What the help of a rule says, for one script, and what to type there."""

    rule: str
    script: str
    says: str
    edits: tuple[tuple[str, str], ...]


FIXES = (
    Fix("attached-target", "q_learning", "`goal.detach()`", (("(now, goal)", "(now, goal.detach())"),)),
    Fix("broadcast-loss", "mse_n1", "squeeze", (("m(torch.randn(6, 4))", "m(torch.randn(6, 4)).squeeze(1)"),)),
    Fix(
        "cleared-grad",
        "zero_step_backward",
        "step",
        (("    opt.step()\n", ""), ("(model(x), y).backward()\n", "(model(x), y).backward()\n    opt.step()\n")),
    ),
    Fix(
        "dead-loss-term",
        "a_distance_with_torch_dist",
        "`p.detach().clone()`",
        (("dict(net.named_parameters())", "{name: p.detach().clone() + 1 for name, p in net.named_parameters()}"),),
    ),
    Fix(
        "broken-tie",
        "parameters-kept/a_pretrained_table_replaces_the_tied_one",
        "copy_() under torch.no_grad()",
        (
            (
                "lm.embed.weight = nn.Parameter(torch.randn(12, 6))",
                "with torch.no_grad():\n    lm.embed.weight.copy_(torch.randn(12, 6))",
            ),
        ),
    ),
    Fix("discarded-result", "a_mode_that_is_not_switched", "`cell.train()`", (("cell.train\n", "cell.train()\n"),)),
    Fix("double-softmax", "nll_without_log", "use log_softmax instead of softmax", (("F.softmax", "F.log_softmax"),)),
    Fix(
        "duplicate-parameter",
        "parameters-kept/a_head_that_is_listed_beside_the_whole",
        "list each parameter once",
        ((" + list(net[1].parameters())", ""),),
    ),
    Fix(
        "freed-graph",
        "a_hessian_in_a_comprehension",
        "retain_graph=True",
        (("torch.autograd.grad(gi, w)", "torch.autograd.grad(gi, w, retain_graph=True)"),),
    ),
    Fix(
        "frozen-moves",
        "parameters-kept/frozen_with_a_gradient_of_zeros",
        "zero_grad(set_to_none=True)",
        (("zero_grad(set_to_none=False)", "zero_grad(set_to_none=True)"),),
    ),
    Fix(
        "grad-before-backward",
        "no_operator_for_none",
        "after `backward()`",
        (
            ("    with torch.no_grad():\n        w -= 0.1 * w.grad\n", ""),
            (".mean().backward()\n", ".mean().backward()\n    w.data -= 0.1 * w.grad\n    w.grad = None\n"),
        ),
    ),
    Fix("grad-shape", "ones_of_the_batch", "shape", (("torch.ones(6)", "torch.ones_like(out)"),)),
    Fix(
        "graph-growth", "losses_kept_beside_an_update_by_hand", ".item()", (("append(loss)", "append(loss.detach())"),)
    ),
    Fix("hidden-write", "an_array_that_a_tensor_lent", "copy()", (("array = x.numpy()", "array = x.numpy().copy()"),)),
    Fix(
        "hook-growth",
        "registered_at_each_step",
        "once, before the loop",
        (
            ("    model[0].register_forward_hook(lambda *_: None)\n", ""),
            ("for _ in range(15):", "model[0].register_forward_hook(lambda *_: None)\nfor _ in range(15):"),
        ),
    ),
    Fix(
        "inplace-leaf",
        "a_function_of_torch",
        "no_grad",
        (("torch.clamp_(w, -1, 1)", "with torch.no_grad():\n    torch.clamp_(w, -1, 1)\nw.sum().backward()"),),
    ),
    Fix("inplace-saved", "a_method_on_a_result", "`y = y.mul(2)`", (("y.mul_(2)", "y = y.mul(2)"),)),
    Fix(
        "late-clip",
        "after_the_step",
        "between backward() and step()",
        (
            ("    opt.step()\n", ""),
            ("(model.parameters(), 1.0)\n", "(model.parameters(), 1.0)\n    opt.step()\n"),
        ),
    ),
    Fix(
        "leaked-grad",
        "a_detached_sample_whose_names_say_nothing",
        "clear",
        (
            ("    two.zero_grad()\n", ""),
            (
                "    (bce(second(seen), torch.ones(6, 1)) + bce(second(made.detach()), torch.zeros(6, 1))).backward()\n",
                "",
            ),
            (
                "    two.step()\n",
                "    two.zero_grad()\n"
                "    (bce(second(seen), torch.ones(6, 1)) + bce(second(made.detach()), torch.zeros(6, 1))).backward()\n"
                "    two.step()\n",
            ),
        ),
    ),
    Fix(
        "missing-create-graph",
        "a_second_derivative",
        "create_graph=True",
        (
            (
                "torch.autograd.grad(u, x, torch.ones_like(u))",
                "torch.autograd.grad(u, x, torch.ones_like(u), create_graph=True)",
            ),
        ),
    ),
    Fix(
        "misspelt-attribute",
        "parameters-kept/requires_gard_of_one_tensor_late",
        "`requires_grad = False`",
        (("requires_gard", "requires_grad"),),
    ),
    Fix("mixed-batch", "lstm_last", "batch_first", (("nn.LSTM(4, 8)", "nn.LSTM(4, 8, batch_first=True)"),)),
    Fix("never-stepped", "no_parentheses", "`opt.step()`, with parentheses", (("opt.step\n", "opt.step()\n"),)),
    Fix("no-effect-step", "a_rate_of_0", "learning rate", (("lr=0.0", "lr=0.1"),)),
    Fix("no-graph", "data_of_the_output", "use the tensor itself", (("out.data", "out"),)),
    Fix(
        "non-leaf-grad",
        "scaled_after_it_was_made",
        "call requires_grad_() on the result",
        (("torch.randn(3, requires_grad=True) * 0.1", "(torch.randn(3) * 0.1).requires_grad_()"),),
    ),
    Fix(
        "nonfinite-grad",
        "log1p_minus_one",
        "mask the input",
        (("torch.log1p(w)", "torch.log1p(torch.where(w > -1, w, 0.0))"),),
    ),
    Fix(
        "nonscalar-backward",
        "a_list_of_losses",
        "sum",
        (("torch.stack(losses).backward()", "torch.stack(losses).sum().backward()"),),
    ),
    Fix(
        "refused-call",
        "a_step_of_lbfgs_without_a_closure",
        "zeroes the gradients, computes the loss, calls backward() and returns the loss",
        (
            ("opt.zero_grad()\nnet(", "def closure():\n    opt.zero_grad()\n    loss = net("),
            (".mean().backward()\nopt.step()", ".mean()\n    loss.backward()\n    return loss\nopt.step(closure)"),
        ),
    ),
    Fix("repeated-backward", "twice_on_one_loss", "once", (("loss.backward(retain_graph=True)\n", ""),)),
    Fix(
        "scaled-grad",
        "a_plain_step",
        "`scaler.step(optimizer)`",
        (("optimizer.step()", "scaler.step(optimizer)\n    scaler.update()"),),
    ),
    Fix(
        "scaler-order",
        "no_update_at_all",
        "`scaler.update()`",
        (("scaler.step(opt)", "scaler.step(opt)\n    scaler.update()"),),
    ),
    Fix(
        "scheduler-steps",
        "before_the_optimizer",
        "after optimizer.step()",
        (("    schedule.step()\n    opt.step()", "    opt.step()\n    schedule.step()"),),
    ),
    Fix(
        "shared-backup",
        "a_fused_step",
        "copy.deepcopy",
        (("start = model.state_dict()", "import copy\nstart = copy.deepcopy(model.state_dict())"),),
    ),
    Fix("sparse-grad", "a_weight_decay", "remove `sparse=True`", ((", sparse=True", ""),)),
    Fix(
        "stale-grad",
        "nobody_calls_zero_grad",
        "zero_grad()",
        (("    loss.backward()", "    opt.zero_grad()\n    loss.backward()"),),
    ),
    Fix(
        "step-without-grad",
        "an_optimizer_of_frozen_parameters",
        "set requires_grad=True",
        (("requires_grad_(False)", "requires_grad_(True)"),),
    ),
    Fix(
        "uneven-accumulation",
        "divided_in_the_call",
        "skip the short window",
        (
            (" or i == len(data) - 1", ""),
            ("        for epoch in range(4):\n", "        for epoch in range(4):\n            opt.zero_grad()\n"),
        ),
    ),
    Fix("unneeded-retain", "retained_for_no_reason", "remove retain_graph=True", (("retain_graph=True", ""),)),
    Fix(
        "unoptimized-parameter",
        "a_parameter_replaced_by_a_result",
        "keep the result in a variable",
        (("self.gain = self.gain.abs()", "gain = self.gain.abs()"), ("x * self.gain", "x * gain")),
    ),
    Fix(
        "unreached-parameter",
        "a_missing_gradient_behind_a_new_leaf",
        "remove `.detach()`",
        ((".detach().requires_grad_()", ""),),
    ),
    Fix(
        "unused-graph",
        "after_training",
        "torch.no_grad()",
        (("for x, _ in batches(20):\n    print(", "for x, _ in batches(20):\n    with torch.no_grad(): print("),),
    ),
    Fix("unused-input", "a_clone_made_at_the_call", "`w`", (("w.clone()", "w"),)),
    Fix("unused-loss", "assigned_over", "add the two", (("    loss = F.mse_loss", "    loss = loss + F.mse_loss"),)),
    Fix(
        "wrong-backward",
        "a_factor_is_missing",
        "derive the backward again",
        (("grad = g * (3 * x).exp()", "grad = 3 * g * (3 * x).exp()"),),
    ),
    Fix("wrong-mode", "a_whole_run_in_evaluation_mode", "call train()", (("net.eval()\nfor", "net.train()\nfor"),)),
    Fix(
        "zero-gradient",
        "cross_entropy_over_one_class",
        "one output per class",
        (("nn.Linear(16, 1)", "nn.Linear(16, 3)"),),
    ),
)


@pytest.mark.parametrize("fix", FIXES, ids=lambda fix: fix.rule)
def test_the_fix_that_the_help_names_works(fix: Fix, checker: Checker) -> None:
    topic, _, name = fix.script.rpartition("/")
    gradcheck = fix.rule == "wrong-backward"
    text = case(f"{topic or fix.rule}/bad/{name}").read_text(encoding="utf-8")
    helps = [one["help"] for one in checker.check(text, gradcheck).findings if one["rule"] == fix.rule]
    assert any(fix.says in one for one in helps), helps
    unmarked = "\n".join(line.partition("  # <-")[0].partition("  # also")[0] for line in text.splitlines()) + "\n"
    for old, new in fix.edits:
        assert unmarked.count(old) >= 1, f"{old!r} is not in the script"
        unmarked = unmarked.replace(old, new)
    fixed = checker.check(unmarked, gradcheck)
    assert fix.rule not in {one["rule"] for one in fixed.findings}, fixed.text
    assert not fixed.alarms, fixed.text
