"""Models: eager, compiled, trained, and one that takes a way by what it is given."""

import torch
from torch import nn


def encode(x, weight):
    return torch.relu(x @ weight).softmax(-1)


@torch.compile
def compiled(x, weight):
    y = torch.relu(x) * 2
    print(end="")
    return y.tanh() * weight + 1


class Trained:
    def __init__(self):
        self.model = nn.Sequential(nn.Linear(64, 128), nn.Dropout(0.5), nn.Linear(128, 8))
        self.optimizer = torch.optim.AdamW(self.model.parameters())

    def step(self, x, wanted):
        self.optimizer.zero_grad()
        loss = nn.functional.cross_entropy(self.model(x), wanted)
        loss.backward()
        self.optimizer.step()
        return loss.item()


def attend(x):
    return nn.functional.scaled_dot_product_attention(x, x, x)


def chosen(x):
    """Take as many steps, on as many values, as ``x`` has above one half."""
    many = x[x > 0.5]
    for _ in range(int(many.numel()) % 7):
        many = many.sin() + many.cos()
    return many.sort().values


def grow(x):
    held = [x.repeat(8) for _ in range(8)]
    return torch.stack(held).cumsum(0)
