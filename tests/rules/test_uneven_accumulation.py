"""What a run with nothing but notes says of itself."""

from __future__ import annotations

from typing import Any


def test_what_holds_of_the_run_is_shown(gradtrace: Any) -> None:
    name = gradtrace.write("""
        import torch
        net = torch.nn.Linear(2, 1)
        opt = torch.optim.SGD(net.parameters(), lr=0.1)
        for step in range(6):
            opt.zero_grad()
            net(torch.ones(3, 2)).pow(2).mean().backward()
            opt.param_groups[0]["lr"] = 0.1 * (step > 0)
            opt.step()
    """)
    done = gradtrace.here("check", "-v", name)
    assert done.status == 0
    for line in (
        "checked: losses are finite: all 6",
        "checked: optimizers step: all 1",
        "checked: steps find gradients: all 6",
        "checked: steps change parameters: 5 of 6",
        "checked: gradients are not zero: all 2",
    ):
        assert line in done.out


def test_a_note_on_the_whole_run_is_no_clean_bill(gradtrace: Any) -> None:
    name = gradtrace.write("""
        import torch
        a, b = torch.nn.Linear(2, 2), torch.nn.Linear(2, 2)
        opt = torch.optim.SGD([*a.parameters(), *b.parameters()], lr=0.1)
        for _ in range(12):
            opt.zero_grad()
            (a(torch.ones(3, 2)).pow(2).mean() + 0.0 * b(torch.ones(3, 2)).pow(2).mean()).backward()
            opt.step()
    """)
    done = gradtrace.here("check", name)
    assert done.status == 0
    assert "no errors or warnings: 1 note" in done.out
    assert "no gradient faults" not in done.out
