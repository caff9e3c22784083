"""``@perfci.benchmark``: a function, its axes and its options, and the work that it returns.

Importing this never imports torch. ``inference`` and ``training_step`` do when they are called.
"""

from __future__ import annotations

import inspect
import itertools
import re
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, overload

from perfci.api import is_number, is_positive, require_right, user_frame
from perfci.errors import BenchmarkError
from perfci.metrics import METRICS, ExtraMetric, Work
from perfci.model.case import NAME, Direction, Gate, Kind, Metric, unfit_reason
from perfci.units import parse_share

if TYPE_CHECKING:
    import torch

LABEL = re.compile(r"[A-Za-z0-9_.:+\-]{1,60}")
_OPTIONS = ("name", "ids", "tags", "skip", "timeout", "thresholds", "metrics")
_VAR_POSITIONAL = inspect.Parameter.VAR_POSITIONAL


Skip = str | Callable[..., str | None] | None


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
    its first argument with the work. ``sources`` are other files that define the benchmark.
    """

    name: str
    function: Callable[..., Any]
    axes: Mapping[str, tuple[Any, ...]]
    labels: Mapping[str, tuple[str, ...]]
    tags: tuple[str, ...]
    skip: Skip
    timeout: float | None
    thresholds: Mapping[str, float]
    metrics: tuple[str, ...] | None
    file: str
    line: int
    hands_over: bool = False
    sources: tuple[str, ...] = ()

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the function itself, so that tests can use a benchmark like the function."""
        return self.function(*args, **kwargs)

    def points(self) -> Iterator[AxisPoint]:
        """Yield every point of the axes. The last axis changes fastest."""
        names = tuple(self.axes)
        indexes = [range(len(self.axes[name])) for name in names]
        for chosen in itertools.product(*indexes):
            at = dict(zip(names, chosen, strict=True))
            labels = {name: self.labels[name][i] for name, i in at.items()}
            inner = ",".join(f"{name}={label}" for name, label in labels.items())
            yield AxisPoint(
                id=f"{self.name}[{inner}]" if inner else self.name,
                labels=labels,
                values={name: self.axes[name][i] for name, i in at.items()},
            )

    def skip_reason(self, point: AxisPoint) -> str | None:
        """Return why this point isn't measured, or None."""
        reason = self.skip(**point.values) if callable(self.skip) else self.skip
        if reason is not None and not isinstance(reason, str):
            raise BenchmarkError(
                "skip-not-text",
                f"{self.file}:{self.line}: `skip` of `{self.name}` gave {reason!r}",
                "Return the reason as text, or None to measure it.",
            )
        return reason or None


DEFINED: list[Benchmark] = []
"""Every benchmark that this process has defined.

With it, discovery finds benchmarks that no name of their module holds.
"""


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
    ``metrics`` limits what is reported.
    Raises BenchmarkError with file and line if the definition is wrong.
    """

    def define(target: Callable[..., Any]) -> Benchmark:
        check = _Definition(target)
        check.is_plain_function(target)
        check.parameters(target, tuple(axes))
        labels = check.labels(axes, ids or {})
        check.metric_names("metrics", metrics or ())
        check.metric_names("thresholds", tuple(thresholds or ()))
        if target.__module__ == "__main__" and "__file__" in target.__globals__:  # no notebook
            text = f"this measures nothing: `perfci run -k {name or target.__name__}` does"
            code = target.__code__
            warnings.warn_explicit(text, UserWarning, code.co_filename, code.co_firstlineno)
        check.timeout(timeout)
        defined = Benchmark(
            name=check.name(name or target.__name__),
            function=target,
            axes={axis: tuple(values) for axis, values in axes.items()},
            labels=labels,
            tags=check.tags(tags),
            skip=skip,
            timeout=timeout,
            thresholds=check.thresholds(thresholds or {}),
            metrics=tuple(metrics) if metrics is not None else None,
            file=check.file,
            line=check.line,
        )
        DEFINED.append(defined)
        return defined

    return define(function) if function is not None else define


class _Definition:
    """The checks of one definition. Each error names file and line, and what to write instead."""

    def __init__(self, target: Any) -> None:
        code = getattr(target, "__code__", None)
        called_at, _, line = user_frame().rpartition(":")
        self.file = code.co_filename if code else called_at
        self.line = code.co_firstlineno if code else int(line)
        self.target = getattr(target, "__name__", repr(target))

    def wrong(self, slug: str, what: str, advice: str) -> BenchmarkError:
        return BenchmarkError(slug, f"{self.file}:{self.line}: {what}", advice)

    def is_plain_function(self, target: Any) -> None:
        if not inspect.isfunction(target):
            raise self.wrong(
                "not-a-function",
                f"@perfci.benchmark stands on {target!r}, not on a function",
                "Write it directly above `def`; name the axes as keywords: "
                "@perfci.benchmark(batch=[1, 16]).",
            )
        if inspect.iscoroutinefunction(target) or inspect.isgeneratorfunction(target):
            raise self.wrong(
                "not-a-plain-function",
                f"benchmark `{self.target}` is async or a generator",
                "Write a plain function that returns the callable to measure.",
            )

    def name(self, name: str) -> str:
        if not NAME.fullmatch(name) or len(name) > 120:
            raise self.wrong(
                "bad-name",
                f"{name!r} can't be a benchmark's name",
                "Use letters, digits, `_`, `.` and `-`, at most 120.",
            )
        return name

    def tags(self, tags: Sequence[str]) -> tuple[str, ...]:
        if isinstance(tags, str) or not all(
            isinstance(tag, str) and NAME.fullmatch(tag) for tag in tags
        ):
            raise self.wrong(
                "bad-tags", f"tags of `{self.target}` are {tags!r}", 'Write tags=["slow"].'
            )
        return tuple(tags)

    def labels(
        self, axes: Mapping[str, Any], ids: Mapping[str, Sequence[str]]
    ) -> dict[str, tuple[str, ...]]:
        for stranger in ids.keys() - axes.keys():
            raise self.wrong(
                "unknown-axis",
                f"ids names `{stranger}`, which is no axis of `{self.target}`",
                f"The axes are: {', '.join(axes) or 'none'}.",
            )
        return {
            axis: self._axis_labels(axis, values, ids.get(axis)) for axis, values in axes.items()
        }

    def _axis_labels(self, axis: str, values: Any, ids: Sequence[str] | None) -> tuple[str, ...]:
        named = f"axis `{axis}` of `{self.target}`"
        if not isinstance(values, (list, tuple, range)) or not values:
            raise self.wrong(
                "bad-axis", f"{named} is {values!r}", f"Write a list of values: {axis}=[1, 16]."
            )
        labels = tuple(map(str, values)) if ids is None else tuple(ids)
        if len(labels) != len(values):
            raise self.wrong(
                "bad-axis",
                f"{named} has {len(values)} values and {len(labels)} ids",
                "Give one id for each value.",
            )
        for label in labels:
            if not isinstance(label, str) or not LABEL.fullmatch(label) or labels.count(label) > 1:
                raise self.wrong(
                    "bad-axis",
                    f"{named}: {label!r} can't be part of an id, or is there twice",
                    f"Name the values: ids={{{axis!r}: [...]}} with letters, digits and "
                    "`_.:+-`, at most 60.",
                )
        return labels

    def parameters(self, target: Callable[..., Any], axes: tuple[str, ...]) -> None:
        accepted = inspect.signature(target).parameters.values()
        if any(parameter.kind is inspect.Parameter.VAR_KEYWORD for parameter in accepted):
            return
        names = [parameter.name for parameter in accepted]
        for axis in axes:
            if axis not in names:
                raise self.wrong(
                    "axis-without-parameter",
                    f"`{self.target}` has no parameter for axis `{axis}`",
                    f"Add `{axis}` to its parameters. @perfci.benchmark's own options are "
                    f"{', '.join(_OPTIONS)}.",
                )
        for parameter in accepted:
            needed = parameter.default is inspect.Parameter.empty
            if needed and parameter.name not in axes and parameter.kind is not _VAR_POSITIONAL:
                raise self.wrong(
                    "parameter-without-axis",
                    f"parameter `{parameter.name}` of `{self.target}` has no axis",
                    f"Write @perfci.benchmark({parameter.name}=[...]) or give it a default. Names "
                    f"of options can't be axes: {', '.join(_OPTIONS)}.",
                )

    def metric_names(self, option: str, names: Sequence[str]) -> None:
        for name in names:
            if name not in METRICS:
                raise self.wrong(
                    "unknown-metric",
                    f"{option} of `{self.target}` names `{name}`, which is no metric",
                    f"Metrics: {', '.join(METRICS)}.",
                )

    def timeout(self, seconds: float | None) -> None:
        if seconds is not None and not is_positive(seconds):
            raise self.wrong(
                "bad-number",
                f"timeout of `{self.target}` is {seconds!r}",
                "Write a number of seconds above zero.",
            )

    def thresholds(self, written: Mapping[str, float | str]) -> dict[str, float]:
        return {name: self._threshold(METRICS[name], value) for name, value in written.items()}

    def _threshold(self, metric: Metric, value: float | str) -> float:
        if not metric.absolute:
            try:
                return parse_share(value)
            except ValueError as error:
                expected = str(error)
        elif isinstance(value, (int, float)) and is_number(value) and value >= 0:
            return float(value)
        else:
            expected = f"an amount in {metric.unit}, as a number, at least 0"
        raise self.wrong(
            "bad-number",
            f"the threshold of {metric.name} for `{self.target}` is {value!r}",
            f"Expected {expected}.",
        )


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
    try:
        share, expected = parse_share(threshold), ""
    except ValueError as error:
        share, expected = 0.0, f"its `threshold` is {threshold!r}, not {error}"
    made = Metric(name, unit, kind, share, gate, direction)
    wrongs = (
        unfit_reason(made),
        expected,
        "" if callable(measure) else f"its `measure` is {measure!r}",
    )
    require_right(
        "metric",
        "bad-metric",
        filter(None, wrongs),
        'Write perfci.metric("hits", function, unit="count", direction="lower", threshold="5%", '
        'gate="fail"): a share and one of fail, warn, info.',
    )
    return ExtraMetric(made, measure)


@dataclass(frozen=True, slots=True)
class ModelOptions:
    """How a model is run. ``where`` is the benchmark's ``file:line``, with which errors begin."""

    where: str
    mode: str = "eager"
    items: float | None = None
    device: str | torch.device | None = None
    compile_options: Mapping[str, Any] | None = None


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

    options = ModelOptions(user_frame(), mode, items, device, compile_options)
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

    options = ModelOptions(user_frame(), mode, items, device, compile_options)
    return training_work(model, inputs, target, loss, optimizer, options)
