"""Programs of PyTorch that are called in steps of gradient accumulation."""

import torch
from torch.nn.functional import cross_entropy, normalize


def nt_xent(z1, z2, temperature):
    z = normalize(torch.cat([z1, z2]), dim=-1)
    logits = (z @ z.T / temperature).masked_fill(torch.eye(len(z), dtype=torch.bool), float("-inf"))
    return cross_entropy(logits, torch.arange(len(z)).roll(len(z1)))


class Divided(torch.nn.Module):
    """Divides by the number of steps itself."""

    def __init__(self, gradient_accumulation_steps=1):
        super().__init__()
        self.steps = gradient_accumulation_steps

    def forward(self, z1, z2, temperature):
        return nt_xent(z1, z2, temperature) / self.steps


class Cached(torch.nn.Module):
    """Keeps the rows of all steps, and returns the loss of all of them in the last one."""

    def __init__(self, accumulation_steps):
        super().__init__()
        self.steps, self.rows = accumulation_steps, []

    def forward(self, z1, z2, temperature):
        self.rows.append((z1, z2))
        if len(self.rows) < self.steps:
            return 0.0 * z1.sum()
        rows, self.rows = self.rows, []
        return nt_xent(*map(torch.cat, zip(*rows, strict=True)), temperature)


class Detached(Cached):
    """The same without the gradient of earlier steps."""

    def forward(self, z1, z2, temperature):
        self.rows = [(a.detach(), b.detach()) for a, b in self.rows]
        return super().forward(z1, z2, temperature)


class FirstTwice(torch.nn.Module):
    """Counts the first step twice."""

    def __init__(self, accumulation_steps):
        super().__init__()
        self.steps, self.calls = accumulation_steps, 0

    def forward(self, logits, target, temperature):
        factor = 2 if self.calls % self.steps == 0 and self.steps > 1 else 1
        self.calls += 1
        return factor * cross_entropy(logits / temperature, target)
