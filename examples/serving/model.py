"""A small transformer that writes one token after another, with a cache of keys and values."""

from collections.abc import Iterator

import torch
from torch import Tensor, nn
from torch.nn import functional

VOCABULARY, WIDTH, HEADS, LAYERS, LONGEST = 512, 128, 4, 2, 1024
Cache = tuple[Tensor, Tensor]


class Block(nn.Module):
    """Attention and a feed-forward layer; what earlier tokens' keys and values were is given."""

    def __init__(self) -> None:
        super().__init__()
        self.norms = nn.ModuleList(nn.LayerNorm(WIDTH) for _ in range(2))
        self.into = nn.Linear(WIDTH, 3 * WIDTH)
        self.out = nn.Linear(WIDTH, WIDTH)
        self.feed = nn.Sequential(
            nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH)
        )

    def forward(self, x: Tensor, cache: Cache | None) -> tuple[Tensor, Cache]:
        split = self.into(self.norms[0](x)).unflatten(-1, (3, HEADS, -1))
        query, key, value = split.permute(2, 0, 3, 1, 4)
        if cache:
            key, value = (
                torch.cat((old, new), dim=2) for old, new in zip(cache, (key, value), strict=True)
            )
        seen = functional.scaled_dot_product_attention(query, key, value, is_causal=not cache)
        x = x + self.out(seen.transpose(1, 2).flatten(2))
        return x + self.feed(self.norms[1](x)), (key, value)


class Transformer(nn.Module):
    """Untrained: it takes as long as a trained one."""

    def __init__(self) -> None:
        super().__init__()
        self.tokens = nn.Embedding(VOCABULARY, WIDTH)
        self.places = nn.Embedding(LONGEST, WIDTH)
        self.blocks = nn.ModuleList(Block() for _ in range(LAYERS))
        self.head = nn.Linear(WIDTH, VOCABULARY)

    @torch.inference_mode()
    def generate(self, prompt: list[int], count: int) -> Iterator[int]:
        """Yield ``count`` tokens after ``prompt``: the whole prompt once, then token by token."""
        caches: list[Cache | None] = [None] * LAYERS
        new, place = torch.tensor([prompt]), 0
        for _ in range(count):
            x = self.tokens(new) + self.places(torch.arange(place, place + new.shape[1]))
            for number, block in enumerate(self.blocks):
                x, caches[number] = block(x, caches[number])
            place += new.shape[1]
            token = int(self.head(x[0, -1]).argmax())
            yield token
            new = torch.tensor([[token]])
