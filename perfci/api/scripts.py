"""``perfci.timer`` takes a statement as work. ``perfci.script`` takes scripts that time statements.

A script for ``torch.utils.benchmark.Timer`` or ``triton.testing`` runs as it is, except for its
timing: each timed call is a case. A worker runs the script up to the call of its case, and measures
the call at that point of the script, because the script may change the values that it uses later.
"""

from __future__ import annotations

import ast
import importlib
import io
import os
import runpy
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, redirect_stderr
from dataclasses import dataclass, field
from functools import partial, wraps
from pathlib import Path
from typing import Any

from perfci.api import files_below, fit_label, fit_name, user_frame
from perfci.api.definition import DEFINED, Benchmark
from perfci.collector import Work
from perfci.errors import BenchmarkError, Unusable

_LONGEST_NAME = 120
_PLACEHOLDER = 1.0
"""The time that the script gets as the result of each timed call, in s or ms."""


def timer(
    stmt: str = "pass",
    setup: str = "pass",
    globals: Mapping[str, Any] | None = None,  # noqa: A002 (timeit's name of it)
    *,
    num_threads: int | None = None,
) -> Work:
    """Return the work of a statement, as ``torch.utils.benchmark.Timer`` times it.

    ``setup`` runs once, in the same names as ``stmt``: those in ``globals``, and ``torch``.
    ``num_threads`` are torch's.
    """
    import torch

    if num_threads is not None:
        torch.set_num_threads(num_threads)
    names = {"torch": torch, **(globals or {})}
    exec(compile(setup, "<setup>", "exec"), names)  # noqa: S102 (the benchmark's own code)
    return Work(_compiled(stmt, names))


def _compiled(stmt: str, names: dict[str, Any]) -> Callable[[], Any]:
    """Return a function that runs the statements and returns the last one's value, if any.

    Names that the statements assign are globals, so that they are kept between calls.
    """
    tree, body = ast.parse("def call(): pass"), ast.parse(stmt).body
    assigned = {
        node.id
        for part in body
        for node in ast.walk(part)
        if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load)
    }
    if body and isinstance(body[-1], ast.Expr):
        body[-1] = ast.Return(body[-1].value)
    shared: list[ast.stmt] = [ast.Global(sorted(assigned))] if assigned else []
    function = tree.body[0]
    if isinstance(function, ast.FunctionDef) and body:
        function.body = [*shared, *body]
    exec(compile(ast.fix_missing_locations(tree), "<stmt>", "exec"), names)  # noqa: S102
    call: Callable[[], Any] = names["call"]
    return call


def script(path: str, *arguments: str, tags: Sequence[str] = ()) -> tuple[Benchmark, ...]:
    """Return the benchmarks of a script that times by torch's ``Timer`` or ``triton.testing``.

    ``path`` is relative to the calling file, in its folder or below, and ``arguments`` are the
    script's. Each call of ``timeit``, ``blocked_autorange``, ``adaptive_autorange``, ``do_bench``
    and of a ``perf_report`` is a case. perfci measures the call: the script gets 1 for its times.
    Raises BenchmarkError if the script lies elsewhere, fails, or times nothing.
    """
    where = user_frame()
    (source,) = files_below(where, path)
    file, _, line = where.rpartition(":")
    run = _ScriptRun(source, arguments)
    run.to_end(where)
    benchmarks = []
    for name, labels in run.cases.items():
        function = partial(_measured, source, arguments, name)
        axes = {"case": {label: label for label in labels}} if len(labels) > 1 else {}
        benchmarks.append(
            Benchmark(
                name=name,
                function=function if axes else partial(function, case=labels[0]),
                file=file,
                line=int(line),
                axes=axes,
                tags=tuple(tags),
                hands_over=True,
                sources=(str(source),),
            )
        )
    DEFINED.extend(benchmarks)
    return tuple(benchmarks)


def _measured(
    source: Path,
    arguments: Sequence[str],
    name: str,
    measure_work: Callable[[Any], None],
    *,
    case: str,
) -> None:
    """Run the script up to the call that is the case, and there have its work measured."""
    run = _ScriptRun(source, arguments, (name, case), measure_work)
    run.to_end("")
    if run.raised:
        raise run.raised
    if not run.measured:
        raise Unusable("no_such_case", f"{source.name} did not time {name} this time")


class _Measured(BaseException):
    """Ends the script once the case is measured.

    A BaseException, so that a script that catches Exception doesn't catch it.
    """


@dataclass(slots=True)
class _ScriptRun:
    """One run of a script, with stand-ins for the functions that time.

    ``cases`` has the labels of timed calls, by name. ``measure_work`` gets the ``wanted`` one.
    """

    source: Path
    arguments: Sequence[str]
    wanted: tuple[str, str] | None = None
    measure_work: Callable[[Any], None] = lambda _: None
    cases: dict[str, list[str]] = field(default_factory=dict)
    raised: BaseException | None = None
    measured: bool = False
    report: tuple[str, str] | None = None

    def to_end(self, where: str) -> None:
        """Run the script. BenchmarkError, at ``where``, if it exits with a code or times nothing.

        An error that the script raises isn't caught here.
        """
        argv, folders, errors = sys.argv, list(sys.path), io.StringIO()
        with ExitStack() as replaced:
            if where:
                replaced.callback(lambda: os.write(2, errors.getvalue().encode()))  # the log
                replaced.enter_context(redirect_stderr(errors))
            for holder, name, stand_in in self._stand_ins():
                replaced.callback(setattr, holder, name, getattr(holder, name))
                setattr(holder, name, stand_in)
            sys.argv = [str(self.source), *self.arguments]
            sys.path.insert(0, str(self.source.parent))
            try:
                runpy.run_path(str(self.source), run_name="__main__")
            except _Measured:
                return
            except SystemExit as ended:
                if ended.code not in {None, 0}:
                    last = errors.getvalue().strip().rpartition("\n")[2]
                    why = f"exits with {ended.code}" + f": {last}" * bool(last)
                    raise _unusable_script(where, self.source, why) from None
            finally:
                sys.argv, sys.path[:] = argv, folders
        if not self.cases:
            raise _unusable_script(where, self.source, "times nothing by torch or triton")

    def _stand_ins(self) -> Iterator[tuple[Any, str, Any]]:
        from torch.utils.benchmark import Timer

        for method in ("timeit", "blocked_autorange", "adaptive_autorange"):
            yield Timer, method, lambda timer, *_, **__: self._timer(timer)
        try:
            testing = importlib.import_module("triton.testing")
        except ImportError:
            return
        for name in ("do_bench", "do_bench_cudagraph"):
            if hasattr(testing, name):
                yield testing, name, self._do_bench
        yield testing, "perf_report", partial(self._perf_report, testing.perf_report)

    def _timer(self, made: Any) -> Any:
        """Take a ``Timer``'s call as a case, and return a measurement of the placeholder."""
        from torch.utils.benchmark import Language, Measurement

        spec = made._task_spec  # noqa: SLF001 (there is no other way to what it times)
        threads = f"{spec.num_threads}-threads" if spec.num_threads != 1 else ""
        label = ".".join(filter(None, (spec.sub_label, spec.description, threads)))

        def work() -> Work:
            if made._language != Language.PYTHON:  # noqa: SLF001
                raise Unusable("timer_of_cpp", f"the statement of {spec.title} is C++")
            return timer(spec.stmt, spec.setup, made._globals, num_threads=spec.num_threads)  # noqa: SLF001

        self._take(spec.label or spec.stmt, label, work)
        return Measurement(number_per_run=1, raw_times=[_PLACEHOLDER], task_spec=spec)

    def _do_bench(
        self,
        fn: Callable[[], Any],
        *_: Any,
        grad_to_none: Sequence[Any] | None = None,
        quantiles: Sequence[float] | None = None,
        return_mode: str = "mean",
        **__: Any,
    ) -> Any:
        """Take the function as a case, and return the placeholder in the form asked for."""

        def call() -> Any:
            for tensor in grad_to_none or ():
                tensor.grad = None
            return fn()

        caller = sys._getframe(1).f_code.co_name  # noqa: SLF001
        name, label = self.report or (caller.strip("<>"), "")
        self._take(name, label, lambda: Work(call if grad_to_none else fn))
        if quantiles:
            return [_PLACEHOLDER] * len(quantiles)
        return [_PLACEHOLDER] if return_mode == "all" else _PLACEHOLDER

    def _perf_report(self, original: Callable[[Any], Any], benchmarks: Any) -> Callable[[Any], Any]:
        """Return triton's decorator. Cases within its function are named by the arguments."""

        def decorate(fn: Callable[..., Any]) -> Any:
            @wraps(fn)
            def named(*args: Any, **kwargs: Any) -> Any:
                before = self.report
                self.report = fn.__name__, ".".join(f"{k}-{v}" for k, v in kwargs.items())
                try:
                    return fn(*args, **kwargs)
                finally:
                    self.report = before

            return original(benchmarks)(named)

        return decorate

    def _take(self, name: str, label: str, work: Callable[[], Work]) -> None:
        """Name a timed call. If it is the wanted one, have it measured and end the script."""
        fit = fit_name(f"{self.source.stem}.{name}").rstrip("_.+-")[:_LONGEST_NAME]
        labels = self.cases.setdefault(fit, [])
        labels.append(fit_label(label or str(len(labels) + 1), labels))
        if self.wanted != (fit, labels[-1]):
            return
        self.measured = True
        try:
            self.measure_work(work())
        except BaseException as error:  # noqa: BLE001 (raised in the end: the script may expect errors, and go on
            self.raised = error
        raise _Measured


def _unusable_script(where: str, source: Path, why: str) -> BenchmarkError:
    return BenchmarkError(
        "bad-benchmark",
        f"{where}: {source.name} {why}",
        'Give its arguments: perfci.script("speed.py", "--device", "cpu").',
    )
