#!/usr/bin/env python3
# SPDX-FileCopyrightText: 2026 The Lockstep authors
# SPDX-License-Identifier: MIT
"""Writes layers.safetensors and modern_layers.safetensors: 100 steps of training in PyTorch of two networks with every
layer that kernels.safetensors and net_100_steps.safetensors do without, for tests/models/golden_layers_test.cpp.

Run with any Python that has PyTorch (1.13 or later); nothing else is needed:
    python3 tests/golden/make_layer_golden.py
Weights and samples are drawn in float32 and everything is computed in float64, so that the files hold right answers. The
networks have no relu and no max-pool, and few bends: rounding hardly ever turns a decision.
"""
import sys

if {"-h", "--help"} & set(sys.argv):
    sys.exit(print(__doc__))

import torch
import torch.nn as nn
import torch.nn.functional as F

from golden_file import record_training, write_safetensors

SEED, SAMPLES, BATCH, STEPS, CLASSES = 20261122, 64, 16, 100, 4
LEARNING_RATE, MOMENTUM = 0.05, 0.5


class Net(nn.Module):
    """The YAML in tests/models/golden_layers_test.cpp."""

    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(2, 5, 3, padding=1)
        self.conv2 = nn.Conv2d(5, 5, 3, padding=1)
        self.conv3 = nn.Conv2d(5, 5, 3, padding=1)
        self.fc1 = nn.Linear(5, 9)
        self.fc2 = nn.Linear(9, CLASSES)

    def forward(self, x):
        start = torch.tanh(self.conv1(x))
        x = F.gelu(self.conv2(start)) + start
        x = torch.sigmoid(x)
        x = F.gelu(self.conv3(x), approximate="tanh") + start
        x = x.mean(dim=(2, 3))
        return self.fc2(torch.tanh(self.fc1(x)))


class Modern(nn.Module):
    """The other YAML there."""

    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(2, 6, 3, padding=1)
        self.gn1 = nn.GroupNorm(3, 6)
        self.fc1 = nn.Linear(6, 4)
        self.fc2 = nn.Linear(4, 6)
        self.conv2 = nn.Conv2d(6, 4, 3, padding=1)
        self.conv3 = nn.Conv2d(4, 4, 3, padding=1)
        self.ln1 = nn.LayerNorm([8, 4, 4], eps=1e-4)
        self.fc3 = nn.Linear(128, CLASSES)

    def forward(self, x):
        body = F.silu(self.gn1(self.conv1(x)))
        gate = F.hardsigmoid(self.fc2(F.elu(self.fc1(body.mean(dim=(2, 3))), alpha=0.7)))
        narrow = F.leaky_relu(self.conv2(body * gate[:, :, None, None]), 0.1)
        x = torch.cat([narrow, F.hardswish(self.conv3(narrow))], 1)
        return self.fc3(self.ln1(F.adaptive_avg_pool2d(x, 4)).flatten(1))


def main():
    torch.set_num_threads(1)
    write("layers.safetensors", Net, LEARNING_RATE)
    write("modern_layers.safetensors", Modern, LEARNING_RATE / 5)


def write(file, model, rate):
    torch.manual_seed(SEED)
    net = model()
    images = torch.randn(SAMPLES, 2, 6, 7)
    labels = torch.randint(0, CLASSES, (SAMPLES,))
    images[torch.arange(SAMPLES), 0, 0, labels] += 3  # something to learn
    tensors = record_training(net, images, labels, BATCH, STEPS, lr=rate, momentum=MOMENTUM)
    write_safetensors(file, tensors)


if __name__ == "__main__":
    main()
