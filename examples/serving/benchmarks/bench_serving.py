"""The server under one client and four, and the model by itself."""

import sys

import perfci


@perfci.benchmark(prompt=[16, 256], concurrency=[1, 4])
def served(prompt: int, concurrency: int) -> object:
    server = perfci.server([sys.executable, "serve.py", "{port}"], ready="/health")
    return perfci.generate(
        server.url + "/v1/completions",
        body={"prompt": "word " * prompt, "max_tokens": 16},
        concurrency=concurrency,
    )


@perfci.benchmark
def model() -> object:
    import torch
    from model import Transformer

    torch.manual_seed(0)
    transformer = Transformer().eval()
    return perfci.generate(lambda: transformer.generate([1] * 16, 16))
