"""The names a benchmark file uses. Importing this never imports torch."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from perfci.api.command import command
from perfci.api.definition import Work, benchmark, metric, user_frame

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Mapping, Sequence

    import torch

    from perfci.api.serving.server import Server

__all__ = [
    "benchmark",
    "command",
    "distributed",
    "generate",
    "inference",
    "metric",
    "server",
    "training_step",
]


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
    torch.compile backend's name; ``device`` defaults to a CUDA device where there is one;
    model and inputs are moved there. ``items`` counts what one call handles (throughput). With
    ``shapes`` (inputs, tuples of inputs, or shapes of the one input) a call is one of each.
    """
    from perfci.api.inference import inference_work

    return inference_work(
        model,
        inputs,
        keyword_inputs,
        mode=mode,
        items=items,
        device=device,
        compile_options=compile_options,
        where=user_frame(),
        shapes=shapes,
    )


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
    scalar; without it the model's output must be one. ``optimizer`` is an optimizer over
    ``model``'s parameters, a callable that makes one from them, or None for SGD.
    """
    from perfci.api.training import training_work

    return training_work(
        model,
        inputs,
        target,
        loss=loss,
        optimizer=optimizer,
        mode=mode,
        items=items,
        device=device,
        compile_options=compile_options,
        where=user_frame(),
    )


def generate(
    stream: Callable[[], Any] | str,
    *,
    body: Any = None,
    headers: Mapping[str, str] | None = None,
    concurrency: int = 1,
    requests: int | None = None,
    rate: float | None = None,
    seed: int = 0,
    objective: Mapping[str, float] | None = None,
) -> Work:
    """Return the work of a load's requests for tokens, each consumed to its end.

    ``stream()`` returns a generator or an async generator of tokens; a URL is asked for
    server-sent events, with ``body`` as JSON by POST where there is one. Closed loop:
    ``concurrency`` clients make ``requests`` in all (as many as clients). Open loop: ``requests``
    (16) arrive at ``rate`` a second, at random times of ``seed``, the same in every call.
    ``objective`` has the most, in s, that a request may take for the share that is ``goodput``.
    """
    from perfci.api.serving.generation import generation_work

    return generation_work(
        stream,
        body=body,
        headers=headers,
        concurrency=concurrency,
        requests=requests,
        rate=rate,
        seed=seed,
        objective=objective or {},
        where=user_frame(),
    )


def server(
    command: Sequence[str | os.PathLike[str]],
    *,
    ready: str | None = None,
    timeout: float = 60.0,
    cwd: str | os.PathLike[str] | None = None,
    env: Mapping[str, str] | None = None,
) -> Server:
    """Start a server for this side, and return it once it is ready; it ends with the worker.

    ``{port}`` in the command's words is a free port's number, which is ``PORT`` in its environment.
    ``ready`` is a path or URL that answers, or text that it prints; without it, the port takes
    connections. ``timeout`` is in s.
    """
    from perfci.api.serving.server import started_server

    return started_server(command, ready=ready, timeout=timeout, cwd=cwd, env=env)


def distributed(
    fn: Callable[..., Any],
    *,
    ranks: int,
    backend: str = "gloo",
    args: Sequence[Any] = (),
    items: float | None = None,
    timeout: float = 120.0,
    start_method: str = "spawn",
    launcher: str | Sequence[str] = "",
) -> Work:
    """Return the work of one step of ``ranks`` processes, from when all begin until the last ends.

    Each rank has torchrun's environment and a process group of ``backend`` ("gloo" or "nccl"), and
    calls ``fn(*args)``, a function of the benchmark's file, which returns its step. A set-up or a
    step that takes more than ``timeout`` s fails. ``start_method`` "fork" spares the ranks their
    imports, "spawn" is always possible. A ``launcher`` ("srun --overlap --nodes=2 --ntasks=4")
    starts one process a rank, on any nodes. Raises BenchmarkError, with file and line, where it is
    written wrongly.
    """
    from perfci.api.distributed.group import distributed_work

    return distributed_work(
        fn,
        ranks=ranks,
        backend=backend,
        args=args,
        items=items,
        timeout=timeout,
        start_method=start_method,
        launcher=launcher,
        where=user_frame(),
    )
