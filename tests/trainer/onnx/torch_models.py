#!/usr/bin/env python3
# SPDX-FileCopyrightText: 2026 The Lockstep authors
# SPDX-License-Identifier: MIT
"""torch_models.py net|resnet8 DATA.safetensors STEPS OUT: PyTorch trains a network of its own and saves it for Lockstep.

DATA has images (bytes) and labels, as the program `logits` beside this file writes them; the first of them are trained
on, all are judged. OUT.safetensors is the state_dict, OUT.onnx what torch.onnx.export makes of it. Prints how many
samples PyTorch gets right. Needs `pip install torch safetensors onnx onnxscript`.
"""
import sys

if {"-h", "--help"} & set(sys.argv):
    sys.exit(print(__doc__))

import torch
import torch.nn as nn
import torch.nn.functional as F
from safetensors.torch import load_file, save_file

MEAN, STD, BATCH = 0.1307, 0.3081, 64


class Net(nn.Module):
    """PyTorch's MNIST example: models/net.yaml, with its names."""

    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 10, kernel_size=5)
        self.conv2 = nn.Conv2d(10, 20, kernel_size=5)
        self.conv2_drop = nn.Dropout2d()
        self.fc1 = nn.Linear(320, 50)
        self.fc2 = nn.Linear(50, 10)

    def forward(self, x):
        x = F.relu(F.max_pool2d(self.conv1(x), 2))
        x = F.relu(F.max_pool2d(self.conv2_drop(self.conv2(x)), 2))
        x = F.relu(self.fc1(x.view(-1, 320)))
        return F.log_softmax(self.fc2(F.dropout(x, training=self.training)), dim=1)


class Block(nn.Module):
    def __init__(self, inputs, outputs, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, outputs, 3, stride, 1)
        self.bn1 = nn.BatchNorm2d(outputs)
        self.conv2 = nn.Conv2d(outputs, outputs, 3, 1, 1)
        self.bn2 = nn.BatchNorm2d(outputs)
        self.shortcut = self.shortcut_bn = nn.Identity()
        if stride > 1:
            self.shortcut, self.shortcut_bn = nn.Conv2d(inputs, outputs, 1, stride), nn.BatchNorm2d(outputs)

    def forward(self, x):
        y = self.bn2(self.conv2(F.relu(self.bn1(self.conv1(x)))))
        return F.relu(y + self.shortcut_bn(self.shortcut(x)))


class ResNet8(nn.Module):
    """models/resnet8.yaml, with its names: stage1.1.conv1."""

    def __init__(self):
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(1, 16, 3, 1, 1), nn.BatchNorm2d(16)
        self.stage1 = nn.ModuleDict({"1": Block(16, 16, 1)})
        self.stage2 = nn.ModuleDict({"1": Block(16, 32, 2)})
        self.stage3 = nn.ModuleDict({"1": Block(32, 64, 2)})
        self.fc = nn.Linear(64, 10)

    def forward(self, x):
        x = F.relu(self.bn1(self.conv1(x)))
        for stage in (self.stage1, self.stage2, self.stage3):
            x = stage["1"](x)
        return self.fc(F.adaptive_avg_pool2d(x, 1).flatten(1))


def train(model, images, labels, steps):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    model.train()
    for step in range(steps):
        at = step * BATCH % (len(images) - BATCH)
        optimizer.zero_grad()
        F.cross_entropy(model(images[at:at + BATCH]), labels[at:at + BATCH]).backward()
        optimizer.step()


def main(kind, data, steps, out):
    torch.manual_seed(1234)
    torch.set_num_threads(1)
    tensors = load_file(data)
    images = (tensors["images"].float() / 255 - MEAN) / STD
    labels = tensors["labels"].long()
    model = {"net": Net, "resnet8": ResNet8}[kind]()
    train(model, images, labels, int(steps))
    model.eval()
    with torch.no_grad():
        right = sum(int((model(images[i:i + 500]).argmax(1) == labels[i:i + 500]).sum()) for i in range(0, len(images), 500))
    save_file(model.state_dict(), out + ".safetensors")
    # optimize=False: or batch normalisation would be folded into the convolutions.
    torch.onnx.export(model, (images[:2],), out + ".onnx", optimize=False, external_data=False, verbose=False)
    print(f"{right} of {len(images)}")


main(*sys.argv[1:])
