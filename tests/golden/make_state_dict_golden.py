#!/usr/bin/env python3
# SPDX-FileCopyrightText: 2026 The Lockstep authors
# SPDX-License-Identifier: MIT
"""Writes torch_state_dict.safetensors, the state_dict of a network that PyTorch trained for a few steps, as safetensors.torch
saves it; and torch_answers.safetensors, samples and the logits that it computes for them in float64. For
tests/trainer/run/starting_weights_test.cpp.

Needs PyTorch (1.13 or later) and `pip install safetensors`:
    python3 tests/golden/make_state_dict_golden.py
"""
import sys

if {"-h", "--help"} & set(sys.argv):
    sys.exit(print(__doc__))

import pathlib

import torch
import torch.nn as nn
import torch.nn.functional as F
from safetensors.torch import save_file

from golden_file import write_safetensors

SEED, SAMPLES, STEPS, CLASSES = 20261122, 16, 3, 5


class Net(nn.Module):
    """The YAML in tests/trainer/run/starting_weights_test.cpp."""

    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(2, 4, 3, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(4)
        self.conv2 = nn.Conv2d(4, 6, (2, 3), stride=2)
        self.fc1 = nn.Linear(24, 8)
        self.fc2 = nn.Linear(8, CLASSES, bias=False)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.bn1(self.conv1(x))), 2)
        x = torch.tanh(self.conv2(x)).flatten(1)
        return self.fc2(F.relu(self.fc1(x)))


def main():
    torch.manual_seed(SEED)
    torch.set_num_threads(1)
    net = Net()
    images, labels = torch.randn(SAMPLES, 2, 9, 12), torch.randint(0, CLASSES, (SAMPLES,))
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for _ in range(STEPS):
        optimizer.zero_grad()
        F.cross_entropy(net(images), labels).backward()
        optimizer.step()
    save_file(net.state_dict(), pathlib.Path(__file__).with_name("torch_state_dict.safetensors"))
    net.double().eval()
    with torch.no_grad():
        logits = net(images.double())
    write_safetensors("torch_answers.safetensors", {"images": images, "logits": logits})


if __name__ == "__main__":
    main()
