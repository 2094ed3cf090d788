#!/usr/bin/env python3
# SPDX-FileCopyrightText: 2026 The Lockstep authors
# SPDX-License-Identifier: MIT
"""Writes optimizers.safetensors: optimisers and schedules of PyTorch in double, for
tests/trainer/training/weight_update_test.cpp.

Run with any Python that has PyTorch (1.13 or later):
    python3 tests/golden/make_optimizer_golden.py
In the file: weights before the first step and the gradients of STEPS steps (float32), the weights after one and after STEPS
steps for each optimiser (float64), and for each schedule the learning rate of each step. The test has the same cases by
the same names. LARS, which PyTorch lacks, is NVIDIA Apex's LARC without clipping around torch.optim.SGD.
"""
import sys

if {"-h", "--help"} & set(sys.argv):
    sys.exit(print(__doc__))

import torch
from torch.optim import lr_scheduler as schedulers

from golden_file import write_safetensors

STEPS, STEPS_PER_EPOCH, EPOCHS = 100, 5, 20
SHAPES = {"weight": (5, 7), "bias": (5,)}
RATE = 0.1


class Lars(torch.optim.SGD):
    """apex.parallel.LARC(SGD, clip=False), from its source."""

    def __init__(self, params, lr, momentum, weight_decay, trust_coefficient=0.001, eps=1e-8):
        super().__init__(params, lr=lr, momentum=momentum)
        for group in self.param_groups:
            group.setdefault("decay", weight_decay)
        self.trust_coefficient, self.eps = trust_coefficient, eps

    def step(self):
        for group in self.param_groups:
            for p in group["params"]:
                if group.get("plain"):
                    continue
                w_norm, g_norm = p.data.norm(), p.grad.norm()
                if w_norm != 0 and g_norm != 0:
                    rate = self.trust_coefficient * w_norm / (g_norm + w_norm * group["decay"] + self.eps)
                    p.grad = (p.grad + group["decay"] * p.data) * rate
        super().step()


def split(params):
    """Groups of which biases have no decay."""
    return [{"params": [params["weight"]]}, {"params": [params["bias"]], "weight_decay": 0}]


def all_of(params):
    return list(params.values())


OPTIMIZERS = {
    "sgd": lambda p: torch.optim.SGD(all_of(p), lr=0.1, weight_decay=0.01),
    "sgd_momentum": lambda p: torch.optim.SGD(all_of(p), lr=0.02, momentum=0.9, weight_decay=0.01),
    "sgd_nesterov": lambda p: torch.optim.SGD(all_of(p), lr=0.02, momentum=0.9, nesterov=True),
    "sgd_dampened": lambda p: torch.optim.SGD(all_of(p), lr=0.02, momentum=0.9, dampening=0.4, weight_decay=0.01),
    "sgd_climbing": lambda p: torch.optim.SGD(
        all_of(p), lr=0.02, momentum=0.9, dampening=0.1, weight_decay=0.01, maximize=True
    ),
    "sgd_no_bias": lambda p: torch.optim.SGD(split(p), lr=0.02, momentum=0.9, weight_decay=0.1),
    "adam": lambda p: torch.optim.Adam(all_of(p)),
    "adam_decay": lambda p: torch.optim.Adam(all_of(p), lr=0.01, betas=(0.8, 0.99), eps=1e-6, weight_decay=0.1),
    "adamw": lambda p: torch.optim.AdamW(all_of(p)),
    "adamw_no_bias": lambda p: torch.optim.AdamW(split(p), lr=0.01, weight_decay=0.1),
    "adam_climbing": lambda p: torch.optim.Adam(all_of(p), lr=0.01, weight_decay=0.1, maximize=True),
    "adamw_climbing": lambda p: torch.optim.AdamW(all_of(p), lr=0.01, weight_decay=0.1, maximize=True),
    "rmsprop": lambda p: torch.optim.RMSprop(all_of(p)),
    "rmsprop_momentum": lambda p: torch.optim.RMSprop(
        all_of(p), lr=0.001, alpha=0.9, eps=1e-6, momentum=0.9, weight_decay=0.01
    ),
    "rmsprop_climbing": lambda p: torch.optim.RMSprop(
        all_of(p), lr=0.001, momentum=0.9, weight_decay=0.01, maximize=True
    ),
    "lars": lambda p: Lars(all_of(p), lr=2, momentum=0.9, weight_decay=0.01),
    "lars_no_bias": lambda p: Lars(
        [{"params": [p["weight"]]}, {"params": [p["bias"]], "plain": True}], lr=0.1, momentum=0.9, weight_decay=0.1
    ),
    "adam_one_cycle": lambda p: torch.optim.Adam(all_of(p), lr=0.01),
    "sgd_one_cycle": lambda p: torch.optim.SGD(all_of(p), lr=0.05, momentum=0.9),
    "rmsprop_one_cycle": lambda p: torch.optim.RMSprop(all_of(p), lr=0.01, momentum=0.9),
}

# By step: 100 of them; by epoch: 20 epochs of 5 steps.
SCHEDULES = {
    "constant": (1, lambda o: schedulers.ConstantLR(o, factor=1)),
    "step": (STEPS_PER_EPOCH, lambda o: schedulers.StepLR(o, step_size=6, gamma=0.3)),
    "step_by_step": (1, lambda o: schedulers.StepLR(o, step_size=30)),
    "multistep": (STEPS_PER_EPOCH, lambda o: schedulers.MultiStepLR(o, milestones=[3, 4, 15], gamma=0.5)),
    "multistep_by_step": (1, lambda o: schedulers.MultiStepLR(o, milestones=[10, 50])),
    "exponential": (STEPS_PER_EPOCH, lambda o: schedulers.ExponentialLR(o, gamma=0.9)),
    "polynomial": (STEPS_PER_EPOCH, lambda o: schedulers.PolynomialLR(o, total_iters=20, power=2)),
    "polynomial_by_step": (1, lambda o: schedulers.PolynomialLR(o, total_iters=60, power=0.5)),
    "cosine": (STEPS_PER_EPOCH, lambda o: schedulers.CosineAnnealingLR(o, T_max=20, eta_min=0.001)),
    "cosine_by_step": (1, lambda o: schedulers.CosineAnnealingLR(o, T_max=100)),
    "one_cycle": (1, lambda o: schedulers.OneCycleLR(o, max_lr=RATE, total_steps=100)),
    "one_cycle_linear": (
        1,
        lambda o: schedulers.OneCycleLR(
            o, max_lr=RATE, total_steps=100, pct_start=0.4, div_factor=10, final_div_factor=100, anneal_strategy="linear"
        ),
    ),
}
# The warm-up, then the schedule from its beginning: what SequentialLR is meant to be (in some releases of PyTorch it is not).
WARMED_UP = {
    "cosine_after_epochs": (STEPS_PER_EPOCH, 4, lambda o: schedulers.CosineAnnealingLR(o, T_max=16)),
    "step_after_epochs": (STEPS_PER_EPOCH, 5, lambda o: schedulers.StepLR(o, step_size=5, gamma=0.5)),
    "cosine_after_steps": (1, 10, lambda o: schedulers.CosineAnnealingLR(o, T_max=90)),
    "constant_after_steps": (1, 30, lambda o: schedulers.ConstantLR(o, factor=1)),
}
WARMUP_START = 0.1


def parameters(initial):
    return {name: torch.nn.Parameter(tensor.double().clone()) for name, tensor in initial.items()}


def flat(params):
    return torch.cat([p.detach().reshape(-1) for p in params.values()])


def train(make, initial, gradients, one_cycle):
    """Weights after the first and after the last step, arena order."""
    params = parameters(initial)
    optimizer = make(params)
    scheduler = None
    if one_cycle:
        scheduler = schedulers.OneCycleLR(optimizer, max_lr=optimizer.param_groups[0]["lr"], total_steps=STEPS)
    for step, gradient in enumerate(gradients):
        offset = 0
        for p in params.values():
            p.grad = gradient[offset : offset + p.numel()].double().reshape(p.shape).clone()
            offset += p.numel()
        optimizer.step()
        if scheduler and step + 1 < STEPS:
            scheduler.step()
        if step == 0:
            first = flat(params)
    return first, flat(params)


def rates(make, every, count=STEPS):
    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=RATE, momentum=0.9)
    scheduler = make(optimizer)
    values = []
    for step in range(count):
        values.append(optimizer.param_groups[0]["lr"])
        optimizer.step()
        if (step + 1) % every == 0 and step + 1 < count:
            scheduler.step()
    return torch.tensor(values, dtype=torch.float64)


def main():
    torch.manual_seed(20261122)
    initial = {name: torch.randn(shape) for name, shape in SHAPES.items()}
    size = sum(tensor.numel() for tensor in initial.values())
    gradients = 0.1 * torch.randn(STEPS, size) + 0.1 * torch.randn(size)
    tensors = {"initial": flat(initial), "gradients": gradients}
    for name, make in OPTIMIZERS.items():
        first, last = train(make, initial, gradients, name.endswith("one_cycle"))
        tensors[f"first.{name}"], tensors[f"last.{name}"] = first, last
    for name, (every, make) in SCHEDULES.items():
        tensors[f"rates.{name}"] = rates(make, every)
    for name, (every, warmup, make) in WARMED_UP.items():
        up = rates(lambda o: schedulers.LinearLR(o, start_factor=WARMUP_START, total_iters=warmup), every, warmup * every)
        tensors[f"rates.{name}"] = torch.cat([up, rates(make, every, STEPS - warmup * every)])
    write_safetensors("optimizers.safetensors", tensors)


if __name__ == "__main__":
    main()
