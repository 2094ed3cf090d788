#!/usr/bin/env python3
# SPDX-FileCopyrightText: 2026 The Lockstep authors
# SPDX-License-Identifier: MIT
"""torchvision_models.py make NAME SIZE OUT | compare NAME LOGITS.safetensors OUT: torchvision's networks, for 200 classes.

NAME is resnet18, resnet50 or mobilenet_v2. `make` draws weights and statistics and saves them as OUT.safetensors, the
state_dict, and OUT.onnx, what torch.onnx.export makes of the network for pictures of 3 x SIZE x SIZE. `compare` computes
the logits of the pictures in LOGITS, as the program `logits` beside this file writes it, in double precision, and says how
far those in the file are from them: 1e-5 of their size at most, as the root of the sum of squares. The modules are
torchvision's where that is installed, and else copies with its names. Needs `pip install torch safetensors onnx onnxscript`.
"""
import sys

if {"-h", "--help"} & set(sys.argv):
    sys.exit(print(__doc__))

import torch
import torch.nn as nn
from safetensors.torch import load_file, save_file

LARGEST_DIFFERENCE, MEAN, STD, CLASSES = 1e-5, (0.485, 0.456, 0.406), (0.229, 0.224, 0.225), 200


def conv3x3(inputs, outputs, stride=1):
    return nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False)


class BasicBlock(nn.Module):
    expansion = 1

    def __init__(self, inputs, width, stride, downsample):
        super().__init__()
        self.conv1, self.bn1 = conv3x3(inputs, width, stride), nn.BatchNorm2d(width)
        self.conv2, self.bn2 = conv3x3(width, width), nn.BatchNorm2d(width)
        self.relu, self.downsample = nn.ReLU(), downsample

    def forward(self, x):
        y = self.bn2(self.conv2(self.relu(self.bn1(self.conv1(x)))))
        return self.relu(y + (self.downsample(x) if self.downsample else x))


class Bottleneck(nn.Module):
    expansion = 4

    def __init__(self, inputs, width, stride, downsample):
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(inputs, width, 1, bias=False), nn.BatchNorm2d(width)
        self.conv2, self.bn2 = conv3x3(width, width, stride), nn.BatchNorm2d(width)
        self.conv3, self.bn3 = nn.Conv2d(width, 4 * width, 1, bias=False), nn.BatchNorm2d(4 * width)
        self.relu, self.downsample = nn.ReLU(), downsample

    def forward(self, x):
        y = self.relu(self.bn2(self.conv2(self.relu(self.bn1(self.conv1(x))))))
        return self.relu(self.bn3(self.conv3(y)) + (self.downsample(x) if self.downsample else x))


class ResNet(nn.Module):
    def __init__(self, block, blocks):
        super().__init__()
        self.inputs = 64
        self.conv1, self.bn1 = nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64)
        self.relu, self.maxpool = nn.ReLU(), nn.MaxPool2d(3, 2, 1)
        for i, count in enumerate(blocks):
            setattr(self, f"layer{i + 1}", self.stage(block, 64 << i, count, 1 if i == 0 else 2))
        self.fc = nn.Linear(512 * block.expansion, CLASSES)

    def stage(self, block, width, count, stride):
        layers, outputs = [], width * block.expansion
        for i in range(count):
            step, downsample = stride if i == 0 else 1, None
            if step > 1 or self.inputs != outputs:
                downsample = nn.Sequential(nn.Conv2d(self.inputs, outputs, 1, step, bias=False), nn.BatchNorm2d(outputs))
            layers.append(block(self.inputs, width, step, downsample))
            self.inputs = outputs
        return nn.Sequential(*layers)

    def forward(self, x):
        x = self.maxpool(self.relu(self.bn1(self.conv1(x))))
        x = self.layer4(self.layer3(self.layer2(self.layer1(x))))
        return self.fc(nn.functional.adaptive_avg_pool2d(x, 1).flatten(1))


def conv_norm(inputs, outputs, kernel, stride=1, groups=1):
    return nn.Sequential(nn.Conv2d(inputs, outputs, kernel, stride, kernel // 2, groups=groups, bias=False),
                         nn.BatchNorm2d(outputs), nn.ReLU6())


class InvertedResidual(nn.Module):
    def __init__(self, inputs, outputs, stride, factor):
        super().__init__()
        width = inputs * factor
        layers = [conv_norm(inputs, width, 1)] if factor > 1 else []
        self.conv = nn.Sequential(*layers, conv_norm(width, width, 3, stride, width),
                                  nn.Conv2d(width, outputs, 1, bias=False), nn.BatchNorm2d(outputs))
        self.adds = stride == 1 and inputs == outputs

    def forward(self, x):
        return x + self.conv(x) if self.adds else self.conv(x)


class MobileNetV2(nn.Module):
    def __init__(self):
        super().__init__()
        layers, inputs = [conv_norm(3, 32, 3, 2)], 32
        for factor, outputs, count, stride in ((1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1),
                                               (6, 160, 3, 2), (6, 320, 1, 1)):
            for i in range(count):
                layers.append(InvertedResidual(inputs, outputs, stride if i == 0 else 1, factor))
                inputs = outputs
        self.features = nn.Sequential(*layers, conv_norm(inputs, 1280, 1))
        self.classifier = nn.Sequential(nn.Dropout(0.2), nn.Linear(1280, CLASSES))

    def forward(self, x):
        return self.classifier(nn.functional.adaptive_avg_pool2d(self.features(x), 1).flatten(1))


def network(name):
    try:
        import torchvision
        return getattr(torchvision.models, name)(num_classes=CLASSES)
    except ImportError:
        return {"resnet18": lambda: ResNet(BasicBlock, (2, 2, 2, 2)), "resnet50": lambda: ResNet(Bottleneck, (3, 4, 6, 3)),
                "mobilenet_v2": MobileNetV2}[name]()


def make(name, size, out):
    torch.manual_seed(1234)
    model = network(name).eval()
    for module in model.modules():
        if isinstance(module, nn.Conv2d):
            nn.init.kaiming_normal_(module.weight, mode="fan_out")
        if isinstance(module, nn.BatchNorm2d):
            nn.init.normal_(module.weight, 0.8, 0.2)
            nn.init.normal_(module.bias, 0.1, 0.2)
            nn.init.normal_(module.running_mean, 0, 0.3)
            nn.init.uniform_(module.running_var, 0.5, 2)
    save_file(model.state_dict(), out + ".safetensors")
    # optimize=False: or batch normalisation would be folded into the convolutions.
    torch.onnx.export(model, (torch.zeros(2, 3, int(size), int(size)),), out + ".onnx", optimize=False,
                      external_data=False, verbose=False)


def compare(name, logits, out):
    torch.set_num_threads(1)
    ours = load_file(logits)
    mean, std = (torch.tensor(numbers).double().reshape(1, 3, 1, 1) for numbers in (MEAN, STD))
    model = network(name).double().eval()
    model.load_state_dict(load_file(out + ".safetensors"))
    with torch.no_grad():
        wanted = model((ours["images"].double() / 255 - mean) / std)
    difference = ((ours["logits"] - wanted).norm() / wanted.norm()).item()
    print(f"{name}: {len(wanted)} pictures of {list(ours['images'].shape[1:])}, logits differ by {difference:.2g}")
    return int(not difference <= LARGEST_DIFFERENCE)


sys.exit({"make": make, "compare": compare}[sys.argv[1]](*sys.argv[2:]))
