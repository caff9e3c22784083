"""``@perfci.benchmark``: a function, its axes and its options, and the work that it returns.

Importing this never imports torch. ``inference`` and ``training_step`` do when they are called.
"""

from __future__ import annotations

import inspect
import itertools
import re
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, overload

from perfci.api import ModelOptions, error_here, is_positive, require, required_share
from perfci.errors import BenchmarkError
from perfci.metrics import METRICS, ExtraMetric, Work
from perfci.model.case import NAME, Direction, Gate, Kind, Metric, unfit_reason
from perfci.units import parse_share

if TYPE_CHECKING:
    import torch

LABEL = re.compile(r"[A-Za-z0-9_.:+\-]{1,60}")
_OPTIONS = ("name", "ids", "tags", "skip", "timeout", "thresholds", "metrics")

Skip = str | Callable[..., str | None] | None
"""A reason to skip cases, or a function of the axes that returns a reason or None."""


@dataclass(frozen=True, slots=True)
class AxisPoint:
    """One point of a benchmark's axes: the case's id, its labels, and the values themselves."""

    id: str
    labels: Mapping[str, str]
    values: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Benchmark:
    """A named piece of work with axes.

    The ``function`` returns the work to measure. If the benchmark ``hands_over``, it instead calls
    its first argument with the work. ``axes`` has the values of each axis by their labels.
    ``sources`` are other files that define the benchmark.
    """

    name: str
    function: Callable[..., Any]
    file: str
    line: int
    axes: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    tags: tuple[str, ...] = ()
    skip: Skip = None
    timeout: float | None = None
    thresholds: Mapping[str, float] = field(default_factory=dict)
    metrics: tuple[str, ...] | None = None
    hands_over: bool = False
    sources: tuple[str, ...] = ()

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the function itself, so that tests can use a benchmark like the function."""
        return self.function(*args, **kwargs)

    def points(self) -> Iterator[AxisPoint]:
        """Yield every point of the axes. The last axis changes fastest."""
        for chosen in itertools.product(*self.axes.values()):
            labels = dict(zip(self.axes, chosen, strict=True))
            inner = ",".join(f"{name}={label}" for name, label in labels.items())
            values = {name: self.axes[name][label] for name, label in labels.items()}
            yield AxisPoint(f"{self.name}[{inner}]" if inner else self.name, labels, values)

    def skip_reason(self, point: AxisPoint) -> str | None:
        """Return why this point isn't measured, or None."""
        reason = self.skip(**point.values) if callable(self.skip) else self.skip
        if reason is not None and not isinstance(reason, str):
            raise BenchmarkError(
                "bad-benchmark",
                f"{self.file}:{self.line}: `skip` of `{self.name}` gave {reason!r}",
                "Return the reason as text, or None to measure it.",
            )
        return reason or None


DEFINED: list[Benchmark] = []
"""Every benchmark that this process has defined. A worker finds those of a file here."""


@overload
def benchmark(function: Callable[..., Any], /) -> Benchmark: ...


@overload
def benchmark(
    *,
    name: str | None = ...,
    ids: Mapping[str, Sequence[str]] | None = ...,
    tags: Sequence[str] = ...,
    skip: Skip = ...,
    timeout: float | None = ...,
    thresholds: Mapping[str, float | str] | None = ...,
    metrics: Sequence[str] | None = ...,
    **axes: Sequence[Any],
) -> Callable[[Callable[..., Any]], Benchmark]: ...


def benchmark(
    function: Callable[..., Any] | None = None,
    /,
    *,
    name: str | None = None,
    ids: Mapping[str, Sequence[str]] | None = None,
    tags: Sequence[str] = (),
    skip: Skip = None,
    timeout: float | None = None,
    thresholds: Mapping[str, float | str] | None = None,
    metrics: Sequence[str] | None = None,
    **axes: Sequence[Any],
) -> Benchmark | Callable[[Callable[..., Any]], Benchmark]:
    """Make a function a benchmark. Every other keyword is an axis with its values.

    ``ids`` names values whose text can't stand in an id. ``skip`` is a reason, or a function of
    the axes that returns a reason or None. ``timeout`` is in s, for each step of a worker.
    ``thresholds`` are shares per metric ("5%" or 0.05), or amounts for metrics that may be zero.
    ``metrics`` are the only ones reported, by default all.
    Raises BenchmarkError with file and line if the definition is wrong.
    """

    def define(target: Callable[..., Any]) -> Benchmark:
        _check_function(target, axes)
        chosen_name = str(name or target.__name__)
        _check_options(chosen_name, tags, timeout, (*(metrics or ()), *(thresholds or ())))
        code = target.__code__
        if target.__module__ == "__main__" and "__file__" in target.__globals__:  # no notebook
            text = f"this call measures nothing: use `perfci run -k {chosen_name}`"
            warnings.warn_explicit(text, UserWarning, code.co_filename, code.co_firstlineno)
        defined = Benchmark(
            name=chosen_name,
            function=target,
            file=code.co_filename,
            line=code.co_firstlineno,
            axes=_labelled(axes, ids or {}),
            tags=tuple(tags),
            skip=skip,
            timeout=timeout,
            thresholds=_parsed(thresholds or {}),
            metrics=tuple(metrics) if metrics is not None else None,
        )
        DEFINED.append(defined)
        return defined

    return define(function) if function is not None else define


def _check(is_right: object, wrong: str, advice: str) -> None:
    require(is_right, "benchmark", wrong, advice)


def _check_function(target: Any, axes: Mapping[str, Any]) -> None:
    _check(
        inspect.isfunction(target),
        f"it stands on {target!r}, not on a function",
        "Write it directly above `def`, and the axes as keywords: "
        "@perfci.benchmark(batch=[1, 16]).",
    )
    _check(
        not (inspect.iscoroutinefunction(target) or inspect.isgeneratorfunction(target)),
        f"`{target.__name__}` is async or a generator",
        "Write a plain function that returns the callable to measure.",
    )
    try:
        inspect.signature(target).bind(**axes)
    except TypeError as error:
        wrong = f"the parameters of `{target.__name__}` and the axes differ: {error}"
        advice = (
            "Write an axis for each parameter, @perfci.benchmark(batch=[1, 16]), or give it a "
            f"default. Names of options can't be axes: {', '.join(_OPTIONS)}."
        )
        raise error_here("bad-benchmark", wrong, advice) from error


def _check_options(
    name: str, tags: Sequence[str], timeout: float | None, named_metrics: Sequence[str]
) -> None:
    advice = "Use letters, digits, `_`, `.` and `-`, at most 120."
    is_name = NAME.fullmatch(name) and len(name) <= 120
    _check(is_name, f"{name!r} can't be a benchmark's name", advice)
    are_tags = not isinstance(tags, str) and all(
        isinstance(tag, str) and NAME.fullmatch(tag) for tag in tags
    )
    _check(are_tags, f"tags are {tags!r}", 'Write tags=["slow"].')
    is_time = timeout is None or is_positive(timeout)
    _check(is_time, f"timeout is {timeout!r}", "Write a number of seconds above zero.")
    for metric in named_metrics:
        _check(metric in METRICS, f"`{metric}` is not a metric", f"Metrics: {', '.join(METRICS)}.")


def _labelled(
    axes: Mapping[str, Any], ids: Mapping[str, Sequence[str]]
) -> dict[str, dict[str, Any]]:
    """Return the values of each axis by their labels: their ids, or else their texts."""
    for named in ids:
        advice = f"The axes are: {', '.join(axes) or 'none'}."
        _check(named in axes, f"ids names `{named}`, not an axis", advice)
    return {axis: _by_label(axis, values, ids.get(axis)) for axis, values in axes.items()}


def _by_label(axis: str, values: Any, ids: Sequence[str] | None) -> dict[str, Any]:
    is_list = isinstance(values, (list, tuple, range)) and len(values) > 0
    _check(is_list, f"axis `{axis}` is {values!r}", f"Write a list of values: {axis}=[1, 16].")
    labels = list(map(str, values) if ids is None else ids)
    wrong = f"axis `{axis}` has {len(values)} values and {len(labels)} ids"
    _check(len(labels) == len(values), wrong, "Give one id for each value.")
    for label in labels:
        _check(
            isinstance(label, str) and LABEL.fullmatch(label) and labels.count(label) == 1,
            f"axis `{axis}`: {label!r} can't be part of an id, or is there twice",
            f"Name the values: ids={{{axis!r}: [...]}} with letters, digits and `_.:+-`, at most "
            "60.",
        )
    return dict(zip(labels, values, strict=True))


def _parsed(thresholds: Mapping[str, float | str]) -> dict[str, float]:
    parsed = {}
    for metric, written in thresholds.items():
        try:
            parsed[metric] = _threshold(METRICS[metric], written)
        except ValueError as error:
            wrong = f"the threshold of {metric} is {written!r}"
            raise error_here("bad-benchmark", wrong, f"Expected {error}.") from error
    return parsed


def _threshold(metric: Metric, written: float | str) -> float:
    if not metric.absolute:
        return parse_share(written)
    if written == 0 or is_positive(written):
        return float(written)
    raise ValueError(f"an amount in {metric.unit}, as a number, at least 0")


def metric(
    name: str,
    measure: Callable[[], float],
    *,
    unit: str = "",
    direction: Direction = "lower",
    threshold: float | str = 0.10,
    gate: Gate = "warn",
    exact: bool = False,
) -> ExtraMetric:
    """Return a metric of the benchmark's own, to be returned together with its callable.

    ``threshold`` is a share: "5%" or 0.05. Raises BenchmarkError, with file and line, if an
    argument is wrong.
    """
    kind: Kind = "exact" if exact else "per_worker"
    made = Metric(name, unit, kind, required_share("metric", threshold), gate, direction)
    wrong = unfit_reason(made) or ("" if callable(measure) else f"its `measure` is {measure!r}")
    require(
        not wrong,
        "metric",
        wrong,
        'Write perfci.metric("hits", function, unit="count", direction="lower", threshold="5%", '
        'gate="fail"): a share and one of fail, warn, info.',
    )
    return ExtraMetric(made, measure)


def inference(
    model: Callable[..., Any],
    *inputs: Any,
    mode: str = "eager",
    items: float | None = None,
    device: str | torch.device | None = None,
    compile_options: dict[str, Any] | None = None,
    shapes: Sequence[Any] | None = None,
    **keyword_inputs: Any,
) -> Work:
    """Return the work of one call ``model(*inputs, **keyword_inputs)`` without gradients.

    ``mode`` is ``eager``, ``default``, ``reduce-overhead``, ``max-autotune`` or a
    torch.compile backend's name. Model and inputs are moved to ``device``, by default a CUDA
    device if there is one. ``items`` counts what one call handles (throughput). With ``shapes``
    (inputs, tuples of inputs, or shapes of the one input) a call is one of each.
    """
    from perfci.api.torch_work import inference_work

    options = ModelOptions(mode, items, device, compile_options)
    return inference_work(model, inputs, keyword_inputs, options, shapes)


def training_step(
    model: Any,
    inputs: Any,
    target: Any = None,
    *,
    loss: Callable[..., Any] | None = None,
    optimizer: Any = None,
    mode: str = "eager",
    items: float | None = None,
    device: str | torch.device | None = None,
    compile_options: dict[str, Any] | None = None,
) -> Work:
    """Return the work of one step: forward, loss, backward, and the optimizer's step.

    ``inputs`` is a tensor or a tuple of positional inputs. ``loss(output, target)`` gives a
    scalar. Without it the model's output must be one. ``optimizer`` is an optimizer over
    ``model``'s parameters, a callable that makes one from them, or None for SGD.
    """
    from perfci.api.torch_work import training_work

    options = ModelOptions(mode, items, device, compile_options)
    return training_work(model, inputs, target, loss, optimizer, options)
