#!/usr/bin/env python3
# SPDX-FileCopyrightText: 2026 The Lockstep authors
# SPDX-License-Identifier: MIT
"""Writes kernels.safetensors: what PyTorch computes for every op, for tests/kernels/golden_test.cpp.

Run with any Python that has PyTorch (1.13 or later); nothing else is needed:
    python3 tests/golden/make_kernel_golden.py
Inputs are drawn in float32 and everything is computed in float64, so that the file holds right answers rather than one
machine's rounding; it is rounded to float32 once, on the way out.
"""
import sys

if {"-h", "--help"} & set(sys.argv):
    sys.exit(print(__doc__))

import torch
import torch.nn.functional as F

from golden_file import write_safetensors

SEED = 20260101
TENSORS = {}


def put(name, tensor):
    """Stores a tensor; floating-point ones as float32."""
    tensor = tensor.detach()
    TENSORS[name] = (tensor.float() if tensor.is_floating_point() else tensor.int()).contiguous()


def draw(*shape, scale=1.0):
    """Normal numbers that float32 holds exactly, as float64."""
    return (scale * torch.randn(*shape, dtype=torch.float32)).double()


def record(case, op, settings, **inputs):
    """Runs op(**inputs), then backward from a random gradient; stores inputs, y, dy, every gradient and the settings."""
    leaves = {name: value.requires_grad_() for name, value in inputs.items()}
    y = op(**leaves)
    dy = draw(*y.shape)
    y.backward(dy)
    put(f"{case}.settings", torch.tensor(settings))
    put(f"{case}.y", y)
    put(f"{case}.dy", dy)
    for name, value in leaves.items():
        put(f"{case}.{name}", value)
        put(f"{case}.d{name}", value.grad)
    return dy


def record_sums_of_products(case, op, settings, **inputs):
    """Like record, and stores abs_y, abs_dx, ...: the same sums over absolute values. Rounding errors scale with these."""
    dy = record(case, op, settings, **inputs)
    leaves = {name: value.detach().abs().requires_grad_() for name, value in inputs.items()}
    y = op(**leaves)
    y.backward(dy.abs())
    put(f"{case}.abs_y", y)
    for name, value in leaves.items():
        put(f"{case}.abs_d{name}", value.grad)


def convolutions():
    # kernel height and width, stride, padding; the image is 7 x 6, 5 samples
    for i, (r, s, stride, padding) in enumerate([(3, 3, 1, 0), (5, 5, 1, 2), (3, 2, 2, 1), (1, 1, 1, 0)]):
        record_sums_of_products(
            f"conv2d.{i}", lambda x, w, b, o=(stride, padding): F.conv2d(x, w, b, stride=o[0], padding=o[1]),
            [stride, padding], x=draw(5, 3, 7, 6), w=draw(4, 3, r, s), b=draw(4))


def pools():
    # kernel, stride, padding
    for i, (k, stride, padding) in enumerate([(2, 2, 0), (3, 2, 1), (3, 1, 0)]):
        settings = [k, stride, padding]
        record(f"max_pool2d.{i}", lambda x, o=settings: F.max_pool2d(x, *o), settings, x=draw(5, 2, 7, 6))
        record(f"avg_pool2d.{i}", lambda x, o=settings: F.avg_pool2d(x, *o), settings, x=draw(5, 2, 7, 6))


def dense():
    record_sums_of_products("linear.0", lambda x, w, b: F.linear(x, w, b), [0],
                            x=draw(18, 13), w=draw(7, 13), b=draw(7))
    record("relu.0", lambda x: F.relu(x), [0], x=draw(6, 9))
    record("log_softmax.0", lambda x: F.log_softmax(x, dim=1), [0], x=draw(19, 10, scale=5.0))


def cross_entropy():
    logits = draw(19, 10, scale=5.0).requires_grad_()
    labels = torch.randint(0, 10, (19,))
    loss = F.cross_entropy(logits, labels, reduction="sum")
    loss.backward()
    put("cross_entropy.0.x", logits)
    put("cross_entropy.0.labels", labels)
    put("cross_entropy.0.y", loss)
    put("cross_entropy.0.correct", (logits.argmax(1) == labels).sum())
    put("cross_entropy.0.dx", logits.grad)


def sgd():
    # learning rate, momentum, weight decay, Nesterov
    for i, (lr, momentum, decay, nesterov) in enumerate(
            [(0.1, 0, 0, False), (0.1, 0, 0.01, False), (0.05, 0.5, 0, False), (0.05, 0.9, 0.01, False),
             (0.02, 0.9, 0.001, True)]):
        w = draw(37).requires_grad_()
        put(f"sgd.{i}.settings", torch.tensor([lr, momentum, decay, float(nesterov)]))
        put(f"sgd.{i}.w0", w)
        optimiser = torch.optim.SGD([w], lr=lr, momentum=momentum, weight_decay=decay, nesterov=nesterov)
        for step in range(1, 5):
            w.grad = draw(37)
            put(f"sgd.{i}.g{step}", w.grad)
            optimiser.step()
            put(f"sgd.{i}.w{step}", w)


def grouped_convolutions():
    # kernel height and width, stride, padding, groups, dilation; the image is 9 x 8, 5 samples, 6 channels into 4 or 6
    cases = [(3, 3, 1, 1, 2, 1), (3, 3, 2, 1, 6, 1), (3, 2, 1, 2, 1, 2), (3, 3, 2, 3, 2, 3), (2, 3, 3, 2, 1, 2)]
    for i, (r, s, stride, padding, groups, dilation) in enumerate(cases, 4):
        out = max(4, groups)
        record_sums_of_products(
            f"conv2d.{i}", lambda x, w, b, o=(stride, padding, dilation, groups): F.conv2d(x, w, b, *o),
            [stride, padding, groups, dilation], x=draw(5, 6, 9, 8), w=draw(out, 6 // groups, r, s), b=draw(out))


def relu6():
    record("relu6.0", lambda x: F.relu6(x), [0], x=torch.cat([draw(6, 9, scale=5.0), torch.tensor([[0.0, 6.0, -0.0] * 3]).double()]))


def main():
    torch.manual_seed(SEED)
    for part in (convolutions, pools, dense, cross_entropy, sgd, grouped_convolutions, relu6):
        part()
    write_safetensors("kernels.safetensors", TENSORS)


if __name__ == "__main__":
    main()
