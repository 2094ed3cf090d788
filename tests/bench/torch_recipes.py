# SPDX-FileCopyrightText: 2026 The Lockstep authors
# SPDX-License-Identifier: MIT
"""The peers of launch/jobs/mnist-99.yaml and fashion-94.yaml: their networks and recipes in PyTorch.

The same layers, batch, label smoothing, SGD with weight decay on weights alone, and OneCycleLR by step; for fashion-94
torchvision's RandomHorizontalFlip and RandomErasing, written out for a whole batch. The normalised set lies in memory as
one tensor. Prints one line an epoch, "epoch SECONDS ACCURACY", seconds without the evaluation.
"""
import argparse
import math
import time

import torch
from torch import nn
from torch.nn import functional as F

from idx import accuracy, load


def conv3():
    """models/conv3.yaml"""
    return nn.Sequential(
        nn.Conv2d(1, 8, 3, bias=False), nn.MaxPool2d(2), nn.BatchNorm2d(8), nn.ReLU(),
        nn.Conv2d(8, 24, 3, bias=False), nn.MaxPool2d(2), nn.BatchNorm2d(24), nn.ReLU(),
        nn.Conv2d(24, 48, 3, bias=False), nn.BatchNorm2d(48), nn.ReLU(),
        nn.Flatten(), nn.Linear(432, 10),
    )


def conv4():
    """models/conv4.yaml"""
    return nn.Sequential(
        nn.Conv2d(1, 24, 3, padding=1, bias=False), nn.MaxPool2d(2), nn.BatchNorm2d(24), nn.ReLU(),
        nn.Conv2d(24, 48, 3, padding=1, bias=False), nn.MaxPool2d(2), nn.BatchNorm2d(48), nn.ReLU(),
        nn.Conv2d(48, 96, 3, padding=1, bias=False), nn.BatchNorm2d(96), nn.ReLU(),
        nn.Conv2d(96, 96, 3, bias=False), nn.BatchNorm2d(96), nn.ReLU(),
        nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(96, 10),
    )


def mirrored_and_erased(x, black):
    """Each image mirrored half of the time, and half of the time with a hole of 2 to 33 % of its area."""
    count, _, height, width = x.shape
    x = torch.where(torch.rand(count, 1, 1, 1) < 0.5, x.flip(3), x)
    area = height * width * torch.empty(count).uniform_(0.02, 0.33)
    ratio = torch.empty(count).uniform_(math.log(0.3), math.log(3.3)).exp()

    def inside(size, whole):
        size = size.sqrt().round().clamp(max=whole)
        begin = (torch.rand(count) * (whole - size + 1)).floor()
        along = torch.arange(whole)
        return (along >= begin[:, None]) & (along < (begin + size)[:, None])

    hole = inside(area * ratio, height)[:, :, None] & inside(area / ratio, width)[:, None, :]
    return x.masked_fill((hole & (torch.rand(count, 1, 1) < 0.5)).unsqueeze(1), black)


RECIPES = {  # network, epochs, learning rate, mean, standard deviation, what becomes of images
    "mnist-99": (conv3, 2, 0.2, 0.1307, 0.3081, lambda x, _: x),
    "fashion-94": (conv4, 16, 0.1, 0.2860, 0.3530, mirrored_and_erased),
}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("recipe", choices=list(RECIPES))
    parser.add_argument("--data", required=True, help="holds the four files of the set, plain or .gz")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--seed", type=int, default=1234)
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    torch.manual_seed(arguments.seed)
    network, epochs, rate, mean, deviation, augmented = RECIPES[arguments.recipe]
    x, y = load(arguments.data, "train")
    test_x, test_y = load(arguments.data, "t10k")
    x, test_x = x.sub_(mean).div_(deviation), test_x.sub_(mean).div_(deviation)

    model, batch = network(), 128
    weights = [p for p in model.parameters() if p.dim() > 1]
    others = [p for p in model.parameters() if p.dim() == 1]
    groups = [{"params": weights, "weight_decay": 5e-4}, {"params": others, "weight_decay": 0}]
    optimizer = torch.optim.SGD(groups, lr=rate, momentum=0.9, nesterov=True)
    steps = epochs * ((len(y) + batch - 1) // batch)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=rate, total_steps=steps)
    for _ in range(epochs):
        start = time.perf_counter()
        for index in torch.randperm(len(y)).split(batch):
            images = augmented(x[index], -mean / deviation)
            optimizer.zero_grad()
            F.cross_entropy(model(images), y[index], label_smoothing=0.1).backward()
            optimizer.step()
            schedule.step()
        seconds = time.perf_counter() - start
        print(f"epoch {seconds:.2f} {accuracy(model, test_x, test_y):.4f}", flush=True)


main()
