#!/usr/bin/env python3
# SPDX-FileCopyrightText: 2026 The Lockstep authors
# SPDX-License-Identifier: MIT
"""Writes layers.safetensors: 100 steps of training in PyTorch of a network with every layer that kernels.safetensors and
net_100_steps.safetensors do without, for tests/models/golden_layers_test.cpp.

Run with any Python that has PyTorch (1.13 or later); nothing else is needed:
    python3 tests/golden/make_layer_golden.py
Weights and samples are drawn in float32 and everything is computed in float64, so that the file holds right answers. The
network has no relu and no max-pool: it is smooth, so rounding cannot turn a decision.
"""
import json
import pathlib
import struct
import sys

import torch
import torch.nn as nn
import torch.nn.functional as F

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


def write_safetensors(path, tensors):
    header, data = {"__metadata__": {"made_by": pathlib.Path(sys.argv[0]).name, "torch": torch.__version__}}, b""
    for name, tensor in tensors.items():
        raw = tensor.contiguous().numpy().tobytes()
        dtype = {torch.float32: "F32", torch.float64: "F64", torch.int32: "I32"}[tensor.dtype]
        header[name] = {"dtype": dtype, "shape": list(tensor.shape), "data_offsets": [len(data), len(data) + len(raw)]}
        data += raw
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)


def main():
    torch.manual_seed(SEED)
    torch.set_num_threads(1)
    net = Net()
    images = torch.randn(SAMPLES, 2, 6, 7)
    labels = torch.randint(0, CLASSES, (SAMPLES,))
    images[torch.arange(SAMPLES), 0, 0, labels] += 3  # something to learn
    tensors = {"images": images, "labels": labels.int()}
    tensors.update({f"initial.{name}": weight.clone() for name, weight in net.state_dict().items()})
    net = net.double()
    optimizer = torch.optim.SGD(net.parameters(), lr=LEARNING_RATE, momentum=MOMENTUM)
    losses = []
    for step in range(STEPS):
        first = step * BATCH % SAMPLES
        optimizer.zero_grad()
        loss = F.cross_entropy(net(images[first:first + BATCH].double()), labels[first:first + BATCH])
        loss.backward()
        optimizer.step()
        losses.append(loss.detach())
        if step == 0:
            tensors.update({f"once.{name}": weight.clone() for name, weight in net.state_dict().items()})
    tensors["losses"] = torch.stack(losses)
    tensors.update({f"final.{name}": weight.clone() for name, weight in net.state_dict().items()})
    print(f"loss {losses[0]:.4f} -> {losses[-1]:.4f}")
    write_safetensors(pathlib.Path(__file__).with_name("layers.safetensors"), tensors)


if __name__ == "__main__":
    main()
