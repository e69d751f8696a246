"""Candidate edits for a finding, from its lines and the source around them. Which of them hold is for the trials to say."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from contextlib import suppress

from gradtrace.fixes.edits import SourceFile
from gradtrace.fixes.makers import graphs, modes, parameters, paths, stepping, values
from gradtrace.fixes.place import Candidate, Maker, Place
from gradtrace.model.finding import Finding, Level
from gradtrace.source import texts

#: in the order in which they are tried
MAKERS: Mapping[str, tuple[Maker, ...]] = {
    # what becomes of gradients
    "stale-grad": (
        stepping.call_it, stepping.count_from_one, stepping.step_after_backward, stepping.step_into_condition,
        stepping.zero_before_backward, stepping.zero_after_step, stepping.zero_elsewhere, stepping.clear_by_hand, stepping.drop_step,
        modes.loop_without_gradients,
    ),
    "repeated-backward": (stepping.drop_repeated,),
    "cleared-grad": (
        stepping.step_after_backward, stepping.zero_earlier, stepping.zero_into_condition, stepping.drop_zero,
        stepping.add_step,
    ),
    "leaked-grad": (
        graphs.detach_arguments, stepping.zero_before_backward, stepping.zero_elsewhere, graphs.under_no_grad,
        stepping.zero_after_step,
    ),
    "step-without-grad": (
        stepping.step_after_backward, stepping.step_into_condition, stepping.drop_step, stepping.zero_into_condition,
    ),
    "never-stepped": (stepping.call_it, stepping.step_at_end, stepping.add_step),
    "late-clip": (stepping.clip_before_step, stepping.unscale_before_clip, stepping.clip_optimized, parameters.hold_all),
    "scaled-grad": (stepping.scaler_step,),
    "scheduler-steps": (stepping.schedule_after_step, stepping.schedule_steps),
    "no-effect-step": (stepping.divide_exactly, stepping.warm_up_above_zero),
    "grad-before-backward": (paths.read_later, paths.require_earlier, paths.require_grad),
    "non-leaf-grad": (paths.leaf_of_result,),
    # graphs
    "freed-graph": (
        graphs.say_so, graphs.detach_operands, graphs.detach_arguments, graphs.retain_earlier, graphs.join_losses,
        graphs.into_loop, graphs.empty_list,
    ),
    "unneeded-retain": (graphs.drop_option,),
    "missing-create-graph": (graphs.create_graph,),
    "graph-growth": (graphs.keep_number, graphs.say_so, modes.loop_without_gradients),
    "attached-target": (graphs.under_no_grad,),
    "unused-graph": (modes.loop_without_gradients, values.without_gradients),
    "hook-growth": (parameters.once_before_loop,),
    # paths
    "no-graph": (paths.drop_cut, paths.gradients_on, paths.unfreeze, paths.require_earlier, paths.require_grad),
    "unreached-parameter": (paths.drop_cut, paths.gradients_on, paths.require_grad),
    "dead-loss-term": (paths.drop_cut, paths.gradients_on),
    "unused-input": (paths.require_earlier, paths.drop_cut),
    "unused-loss": (paths.into_loss,),
    "zero-gradient": (
        values.other_dimension, paths.drop_cut,
    ),
    # parameters
    "unoptimized-parameter": (
        parameters.register, parameters.as_parameter, parameters.hold_all, parameters.hold_more, parameters.in_place_of_new,
        parameters.made_once, parameters.optimizer_later, parameters.add_group, parameters.is_a_module,
    ),
    "duplicate-parameter": (parameters.each_once,),
    "frozen-moves": (parameters.grad_to_none,),
    "misspelt-attribute": (parameters.spell,),
    "broken-tie": (parameters.tie_again,),
    # values
    "double-softmax": (values.drop_softmax,),
    "broadcast-loss": (values.match_shapes,),
    "mixed-batch": (values.other_dimension, values.batch_first, values.swap_dimensions),
    "grad-shape": (values.fit_gradient,),
    "nonscalar-backward": (values.reduce_loss,),
    "nonfinite-grad": (values.safe_slope, values.clip_gradients),
    "inplace-saved": (values.out_of_place, graphs.say_so, values.copy_saved, values.write_later),
    "hidden-write": (values.out_of_place, values.copy_saved, values.write_later),
    "inplace-leaf": (values.without_gradients, values.write_detached, values.out_of_place_by_help),
    "wrong-mode": (modes.train_again, modes.follow_mode),
}  # fmt: skip


def candidates(finding: Finding, files: Mapping[str, SourceFile]) -> list[Candidate]:
    """All edits to try for a finding, each text once, the likeliest first."""
    found: dict[tuple[str, str], Candidate] = {}
    for candidate in _made(finding, files):
        found.setdefault((candidate.path, candidate.text), candidate)
    return list(found.values())


def has_candidates(finding: Finding) -> bool:
    """Whether there is an edit to try, decided by the rule and the source alone."""
    files: dict[str, SourceFile] = {}
    for site in (finding.site, *(related.site for related in finding.related)):
        with suppress(SyntaxError, ValueError):
            files[site.path] = SourceFile(site.path, "".join(texts.lines(site.path)))
    return finding.level > Level.NOTE and finding.site.path in files and any(True for _ in _made(finding, files))


def _made(finding: Finding, files: Mapping[str, SourceFile]) -> Iterator[Candidate]:
    sites = [finding.site, *(related.site for related in finding.related)]
    places = [Place(finding, site, files[site.path]) for site in sites if site.path in files]
    for make in MAKERS.get(finding.rule, ()):
        for place in places:
            for candidate in make(place):
                if _parses(candidate.text):
                    yield candidate


def _parses(text: str) -> bool:
    try:
        ast.parse(text)
    except (SyntaxError, ValueError):
        return False
    return True
