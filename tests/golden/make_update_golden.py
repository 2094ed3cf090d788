#!/usr/bin/env python3
# SPDX-FileCopyrightText: 2026 The Lockstep authors
# SPDX-License-Identifier: MIT
"""Writes updates.safetensors: clipped gradients, groups of parameters, frozen ones, AMSGrad, LAMB and Lion of PyTorch in double,
for tests/trainer/training/update_golden_test.cpp.

Run with any Python that has PyTorch (1.13 or later):
    python3 tests/golden/make_update_golden.py
In the file: weights before the first step and the gradients of STEPS steps (float32), and for each case the weights after
one and after STEPS steps (float64). The test has the same cases by the same names. LAMB, which PyTorch lacks, is timm's
without its own clipping; so is Lion, by the program in its paper.
"""
import sys

if {"-h", "--help"} & set(sys.argv):
    sys.exit(print(__doc__))

import torch
from torch.nn.utils import clip_grad_norm_, clip_grad_value_

from golden_file import write_safetensors

STEPS = 100
SHAPES = {"conv.weight": (4, 3, 2, 2), "conv.bias": (4,), "fc.weight": (5, 7), "fc.bias": (5,)}


class Lamb(torch.optim.Optimizer):
    """timm.optim.Lamb without max_grad_norm and trust_clip, from its source: a tensor without decay is not adapted."""

    def __init__(self, params, lr=1e-3, betas=(0.9, 0.999), eps=1e-6, weight_decay=0.01):
        super().__init__(params, {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay})

    def step(self):
        for group in self.param_groups:
            beta1, beta2 = group["betas"]
            group["step"] = group.get("step", 0) + 1
            correction1, correction2 = 1 - beta1 ** group["step"], 1 - beta2 ** group["step"]
            for p in group["params"]:
                state = self.state[p]
                if not state:
                    state["exp_avg"], state["exp_avg_sq"] = torch.zeros_like(p), torch.zeros_like(p)
                state["exp_avg"].mul_(beta1).add_(p.grad, alpha=1 - beta1)
                state["exp_avg_sq"].mul_(beta2).addcmul_(p.grad, p.grad, value=1 - beta2)
                divisor = (state["exp_avg_sq"].sqrt() / correction2**0.5).add_(group["eps"])
                update = (state["exp_avg"] / correction1).div_(divisor)
                if group["weight_decay"] != 0:
                    update.add_(p.data, alpha=group["weight_decay"])
                    w_norm, u_norm = p.data.norm(), update.norm()
                    if w_norm > 0 and u_norm > 0:
                        update.mul_(w_norm / u_norm)
                p.data.add_(update, alpha=-group["lr"])


class Lion(torch.optim.Optimizer):
    """Program 1 of Chen et al., 2023, "Symbolic Discovery of Optimization Algorithms"."""

    def __init__(self, params, lr=1e-4, betas=(0.9, 0.99), weight_decay=0.0):
        super().__init__(params, {"lr": lr, "betas": betas, "weight_decay": weight_decay})

    def step(self):
        for group in self.param_groups:
            beta1, beta2 = group["betas"]
            for p in group["params"]:
                m = self.state[p].setdefault("exp_avg", torch.zeros_like(p))
                update = torch.sign(beta1 * m + (1 - beta1) * p.grad) + group["weight_decay"] * p.data
                m.mul_(beta2).add_(p.grad, alpha=1 - beta2)
                p.data.add_(update, alpha=-group["lr"])


def all_of(p):
    return list(p.values())


def part(p, prefix, **options):
    return {"params": [tensor for name, tensor in p.items() if name.startswith(prefix)], **options}


def biases_apart(p):
    return [
        {"params": [t for name, t in p.items() if name.endswith("weight")]},
        {"params": [t for name, t in p.items() if name.endswith("bias")], "weight_decay": 0},
    ]


def clip_norm(most):
    return lambda p: clip_grad_norm_([t for t in p.values() if t.grad is not None], most)


def clip_value(most):
    return lambda p: clip_grad_value_(all_of(p), most)


def freeze(prefix):
    def forget(p):
        for name, tensor in p.items():
            if name.startswith(prefix):
                tensor.grad = None

    return forget


def freeze_and_clip(prefix, most):
    return lambda p: (freeze(prefix)(p), clip_norm(most)(p))


def decayed(optimizer):
    """By step, as train.schedule {kind: exponential, gamma: 0.98, by: step}: every group's own rate."""
    return torch.optim.lr_scheduler.ExponentialLR(optimizer, gamma=0.98)


SGD, Adam, AdamW = torch.optim.SGD, torch.optim.Adam, torch.optim.AdamW
# The optimiser, what is done to gradients before each step, and a schedule.
CASES = {
    "clip_norm": (lambda p: SGD(all_of(p), lr=0.02, momentum=0.9, weight_decay=0.01), clip_norm(1.0), None),
    "clip_norm_adam": (lambda p: Adam(all_of(p), lr=0.01), clip_norm(0.5), None),
    "clip_norm_never": (lambda p: SGD(all_of(p), lr=0.02), clip_norm(1e6), None),
    "clip_value": (lambda p: SGD(all_of(p), lr=0.02, momentum=0.9), clip_value(0.1), None),
    "groups": (
        lambda p: SGD([part(p, "conv", lr=0.002), part(p, "fc", weight_decay=0)], lr=0.02, momentum=0.9, weight_decay=0.1),
        None,
        None,
    ),
    "groups_schedule": (
        lambda p: AdamW([part(p, "conv", lr=0.001, weight_decay=0.3), part(p, "fc")], lr=0.01, weight_decay=0.1),
        None,
        decayed,
    ),
    "groups_decay_alone": (
        lambda p: Adam([part(p, "conv"), part(p, "fc", weight_decay=0.2)], lr=0.01, weight_decay=0),
        None,
        None,
    ),
    "groups_first": (
        lambda p: SGD([part(p, "fc.bias", lr=0.04), part(p, "fc.weight", lr=0.002), part(p, "conv")], lr=0.02),
        None,
        None,
    ),
    "freeze": (lambda p: Adam(all_of(p), lr=0.01, weight_decay=0.1), freeze("conv"), None),
    "freeze_clip_norm": (lambda p: SGD(all_of(p), lr=0.02, momentum=0.9), freeze_and_clip("fc.weight", 0.5), None),
    "amsgrad": (lambda p: Adam(all_of(p), lr=0.01, betas=(0.9, 0.9), amsgrad=True), None, None),
    "amsgrad_decay": (
        lambda p: AdamW(all_of(p), lr=0.01, betas=(0.8, 0.95), weight_decay=0.1, amsgrad=True),
        None,
        None,
    ),
    "amsgrad_climbing": (
        lambda p: Adam(all_of(p), lr=0.01, betas=(0.9, 0.9), weight_decay=0.1, amsgrad=True, maximize=True),
        None,
        None,
    ),
    "lamb": (lambda p: Lamb(all_of(p)), None, None),
    "lamb_no_bias": (lambda p: Lamb(biases_apart(p), lr=0.01, betas=(0.8, 0.99), weight_decay=0.1), None, None),
    "lamb_no_decay": (lambda p: Lamb(all_of(p), lr=0.01, weight_decay=0), None, None),
    "lamb_clip_norm": (lambda p: Lamb(all_of(p), lr=0.01), clip_norm(1.0), None),
    "lamb_groups": (
        lambda p: Lamb([part(p, "conv", lr=0.001), part(p, "fc", weight_decay=0)], lr=0.01, weight_decay=0.1),
        None,
        decayed,
    ),
    "lion": (lambda p: Lion(all_of(p)), None, None),
    "lion_decay": (lambda p: Lion(all_of(p), lr=0.01, betas=(0.5, 0.8), weight_decay=0.3), None, None),
    "lion_groups": (
        lambda p: Lion([part(p, "conv", lr=0.001), part(p, "fc", weight_decay=0)], lr=0.01, weight_decay=0.1),
        clip_value(0.1),
        decayed,
    ),
}


def flat(params):
    return torch.cat([p.detach().reshape(-1) for p in params.values()])


def train(case, initial, gradients):
    """Weights after the first and after the last step, arena order."""
    make, change, schedule = case
    params = {name: torch.nn.Parameter(tensor.double().clone()) for name, tensor in initial.items()}
    optimizer = make(params)
    scheduler = schedule(optimizer) if schedule else None
    for step, gradient in enumerate(gradients):
        offset = 0
        for p in params.values():
            p.grad = gradient[offset : offset + p.numel()].double().reshape(p.shape).clone()
            offset += p.numel()
        if change:
            change(params)
        optimizer.step()
        if scheduler:
            scheduler.step()
        if step == 0:
            first = flat(params)
    return first, flat(params)


def main():
    torch.manual_seed(20261123)
    initial = {name: torch.randn(shape) for name, shape in SHAPES.items()}
    size = sum(tensor.numel() for tensor in initial.values())
    # Norms from 0.2 to 2.6: some steps are clipped, some are not.
    scales = torch.tensor([0.2 + 0.4 * (step * 5 % 7) for step in range(STEPS)]).reshape(-1, 1)
    gradients = scales * (0.08 * torch.randn(STEPS, size) + 0.06 * torch.randn(size))
    tensors = {"initial": flat(initial), "gradients": gradients}
    for name, case in CASES.items():
        tensors[f"first.{name}"], tensors[f"last.{name}"] = train(case, initial, gradients)
    write_safetensors("updates.safetensors", tensors)


if __name__ == "__main__":
    main()
