#!/usr/bin/env python3
# SPDX-FileCopyrightText: 2026 The Lockstep authors
# SPDX-License-Identifier: MIT
"""Writes layers.safetensors, pictures.safetensors, modern_layers.safetensors and transposed.safetensors: 100 steps of
training in PyTorch of networks with every layer that kernels.safetensors and net_100_steps.safetensors do without, for
tests/models/golden_layers_test.cpp. The second one is made of the pieces of residual and mobile networks for pictures.

Run with any Python that has PyTorch (1.13 or later); nothing else is needed:
    python3 tests/golden/make_layer_golden.py
Weights and samples are drawn in float32 and everything is computed in float64, so that the files hold right answers. The
first network and the last have no relu and no max-pool: they are smooth, so rounding cannot turn a decision; the third
has few bends.
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


class Pictures(nn.Module):
    """The other YAML there: a stem, a pool whose windows overlap, groups, dilation, a depthwise convolution, relu6."""

    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(2, 6, 7, stride=2, padding=3)
        self.conv2 = nn.Conv2d(6, 9, 3, padding=2, dilation=2, groups=3)
        self.conv3 = nn.Conv2d(9, 9, 3, padding=1, groups=9)
        self.conv4 = nn.Conv2d(9, 9, 1)
        self.conv5 = nn.Conv2d(9, 8, 3, stride=2, padding=1)
        self.fc1 = nn.Linear(8, CLASSES)

    def forward(self, x):
        x = F.max_pool2d(torch.tanh(self.conv1(x)), 3, 2, 1)
        start = F.relu6(self.conv2(x))
        x = self.conv4(torch.tanh(self.conv3(start))) + start
        x = torch.tanh(self.conv5(x))
        return self.fc1(x.mean(dim=(2, 3)))


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


class Transposed(nn.Module):
    """The last YAML there."""

    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(2, 6, 3, stride=2)
        self.conv2 = nn.ConvTranspose2d(6, 8, 3, stride=2, padding=1, output_padding=1, groups=2)
        self.conv3 = nn.ConvTranspose2d(8, 4, (2, 3), dilation=2, bias=False)
        self.conv4 = nn.ConvTranspose2d(4, 3, 3, padding=1)
        self.fc1 = nn.Linear(300, CLASSES)

    def forward(self, x):
        x = F.silu(self.conv2(torch.tanh(self.conv1(x))))
        x = torch.tanh(self.conv4(torch.tanh(self.conv3(x))))
        return self.fc1(x.flatten(1))


def record(name, net, height, width, rate=LEARNING_RATE):
    images = torch.randn(SAMPLES, 2, height, width)
    labels = torch.randint(0, CLASSES, (SAMPLES,))
    images[torch.arange(SAMPLES), 0, 0, labels] += 3  # something to learn
    tensors = record_training(net, images, labels, BATCH, STEPS, lr=rate, momentum=MOMENTUM)
    write_safetensors(name, tensors)


def main():
    torch.manual_seed(SEED)
    torch.set_num_threads(1)
    record("layers.safetensors", Net(), 6, 7)
    record("pictures.safetensors", Pictures(), 13, 11)
    torch.manual_seed(SEED)
    record("modern_layers.safetensors", Modern(), 6, 7, LEARNING_RATE / 5)
    torch.manual_seed(SEED)
    record("transposed.safetensors", Transposed(), 9, 8)


if __name__ == "__main__":
    main()
