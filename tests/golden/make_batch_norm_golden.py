#!/usr/bin/env python3
# SPDX-FileCopyrightText: 2026 The Lockstep authors
# SPDX-License-Identifier: MIT
"""Writes batch_norm.safetensors: 100 steps of training in PyTorch of a network with batch normalisation over images and
vectors, for tests/trainer/training/batch_norm_test.cpp.

Run with any Python that has PyTorch (1.13 or later); nothing else is needed:
    python3 tests/golden/make_batch_norm_golden.py
Weights and samples are drawn in float32 and everything is computed in float64. The last batch of an epoch is smaller.
"""
import sys

if {"-h", "--help"} & set(sys.argv):
    sys.exit(print(__doc__))

import torch
import torch.nn as nn
import torch.nn.functional as F

from golden_file import record_training, write_safetensors

SEED, SAMPLES, BATCH, STEPS, CLASSES = 20261122, 64, 20, 100, 4
LEARNING_RATE, MOMENTUM = 0.05, 0.5


class Net(nn.Module):
    """The YAML in tests/trainer/training/batch_norm_test.cpp."""

    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(2, 5, 3, padding=1)
        self.bn1 = nn.BatchNorm2d(5)
        self.conv2 = nn.Conv2d(5, 5, 3, padding=1)
        self.bn2 = nn.BatchNorm2d(5, eps=0.01, momentum=0.3, affine=False)
        self.fc1 = nn.Linear(5, 9)
        self.bn3 = nn.BatchNorm1d(9, eps=1e-3)
        self.fc2 = nn.Linear(9, CLASSES)

    def forward(self, x):
        start = torch.tanh(self.bn1(self.conv1(x)))
        x = F.gelu(self.bn2(self.conv2(start))) + start
        x = x.mean(dim=(2, 3))
        return self.fc2(torch.tanh(self.bn3(self.fc1(x))))


def main():
    torch.manual_seed(SEED)
    torch.set_num_threads(1)
    net = Net()
    images = torch.randn(SAMPLES, 2, 6, 7) * 0.5 + 1
    labels = torch.randint(0, CLASSES, (SAMPLES,))
    images[torch.arange(SAMPLES), 0, 0, labels] += 3  # something to learn
    tensors = record_training(net, images, labels, BATCH, STEPS, lr=LEARNING_RATE, momentum=MOMENTUM)
    net.eval()
    with torch.no_grad():
        tensors["evaluated"] = F.cross_entropy(net(images.double()), labels).reshape(1)
    write_safetensors("batch_norm.safetensors", tensors)


if __name__ == "__main__":
    main()
