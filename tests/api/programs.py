"""Small programs to compile, each with a graph break of its own kind."""

from pathlib import Path

import torch


def whole(x):
    return x.sin() + 1


def breaks_once(x):
    y = x.sin()
    print(end="")  # break: plain
    return y.cos()


def inner(x):
    y = x + 1
    print(end="")  # break: nested
    return y * 2


def breaks_inside_a_call(x):
    return inner(x.sin()).cos()


def branches_on_data(x):
    if x.sum() > 0:  # break: data-dependent
        return x * 2
    return x - 1


def breaks_in_a_loop(x):
    for _ in range(3):
        x = x + 1
        print(end="")  # break: loop
    return x


def breaks_over_several_lines(x):
    return torch.stack(
        [
            x,
            x * x.sum().item(),  # break: several lines
        ]
    )


def returns_its_input(x):
    return x


def line_of(mark):
    lines = Path(__file__).read_text(encoding="utf-8").splitlines()
    return next(i for i, line in enumerate(lines, 1) if line.endswith(f"# break: {mark}"))
