# SPDX-FileCopyrightText: 2026 The Lockstep authors
# SPDX-License-Identifier: MIT
"""The rival of versus_torch: Net, LeNet or ResNet-8 on MNIST in PyTorch, in the ways that people use it on CPUs.

The strongest baseline we know of: the whole normalised set lies in memory as one tensor, a batch is one index_select.
Batch normalisation looks at a rank's own batch (SyncBatchNorm is for GPUs), so ResNet-8 is the same network on one rank
alone. --way says which way; those that begin with "ddp" (over gloo, one thread a rank) are started once per rank with
RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT set, those that begin with "process" alone, with --threads. Rank 0 prints
one line per epoch: "epoch SECONDS LOSS", with --accuracy also the accuracy on the test set. What torch.compile takes to
compile is not counted.
"""
import argparse
import copy
import os
import time

import torch
import torch.nn as nn
import torch.nn.functional as F

import idx


def net():
    """models/net.yaml"""
    return nn.Sequential(
        nn.Conv2d(1, 10, 5), nn.MaxPool2d(2), nn.ReLU(), nn.Conv2d(10, 20, 5), nn.Dropout2d(), nn.MaxPool2d(2), nn.ReLU(),
        nn.Flatten(), nn.Linear(320, 50), nn.ReLU(), nn.Dropout(), nn.Linear(50, 10))


def lenet():
    """models/lenet.yaml"""
    return nn.Sequential(
        nn.Conv2d(1, 20, 3), nn.ReLU(), nn.AvgPool2d(2), nn.Conv2d(20, 50, 5), nn.ReLU(), nn.AvgPool2d(2), nn.Flatten(),
        nn.Linear(800, 128), nn.ReLU(), nn.Linear(128, 10))


class Block(nn.Module):
    def __init__(self, before, channels):
        super().__init__()
        stride = 1 if before == channels else 2
        self.conv1 = nn.Conv2d(before, channels, 3, stride, 1)
        self.bn1 = nn.BatchNorm2d(channels)
        self.conv2 = nn.Conv2d(channels, channels, 3, 1, 1)
        self.bn2 = nn.BatchNorm2d(channels)
        self.shortcut = nn.Identity()
        if stride == 2:
            self.shortcut = nn.Sequential(nn.Conv2d(before, channels, 1, 2), nn.BatchNorm2d(channels))

    def forward(self, x):
        return F.relu(self.bn2(self.conv2(F.relu(self.bn1(self.conv1(x))))) + self.shortcut(x))


class ResNet(nn.Module):
    """models/resnet8.yaml, and with three blocks a stage models/resnet20.yaml."""

    def __init__(self, blocks=1):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 16, 3, 1, 1)
        self.bn1 = nn.BatchNorm2d(16)
        stages, before = [], 16
        for channels in (16, 32, 64):
            for _ in range(blocks):
                stages.append(Block(before, channels))
                before = channels
        self.stages = nn.Sequential(*stages)
        self.fc = nn.Linear(64, 10)

    def forward(self, x):
        return self.fc(self.stages(F.relu(self.bn1(self.conv1(x)))).mean((2, 3)))


MODELS = {"net": net, "lenet": lenet, "resnet8": ResNet, "resnet20": lambda: ResNet(3)}


def load(directory, part):
    x, y = idx.load(directory, part)
    return x.sub_(0.1307).div_(0.3081), y


WAYS = [base + layout + compiled for base in ("ddp", "process") for layout in ("", "+channels_last") for compiled in ("", "+compile")]


def compiled_in_advance(model, x, y, sizes):
    """torch.compile(model) that has seen batches of these sizes, with the weights that it came with."""
    before = copy.deepcopy(model.state_dict())
    fast = torch.compile(model)
    for size in sizes:
        for _ in range(2):
            F.cross_entropy(fast(x[:size]), y[:size]).backward()
    model.load_state_dict(before)
    model.zero_grad()
    return fast


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", required=True)
    parser.add_argument("--model", default="net", choices=list(MODELS))
    parser.add_argument("--way", default="ddp", choices=WAYS)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--global-batch", type=int, default=128)
    parser.add_argument("--epochs", type=int, default=1)
    parser.add_argument("--momentum", type=float, default=0.5)
    parser.add_argument("--seed", type=int, default=1234)
    parser.add_argument("--accuracy", action="store_true", help="evaluate after each epoch, not counted in its seconds")
    arguments = parser.parse_args()
    is_ddp = arguments.way.startswith("ddp")
    rank, world = (int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])) if is_ddp else (0, 1)
    torch.set_num_threads(arguments.threads)
    if is_ddp:
        torch.distributed.init_process_group("gloo")
    torch.manual_seed(arguments.seed)

    x, y = load(arguments.data, "train")
    test_x, test_y = load(arguments.data, "t10k") if arguments.accuracy else (None, None)
    plain = MODELS[arguments.model]()
    if "channels_last" in arguments.way:
        plain, x = plain.to(memory_format=torch.channels_last), x.to(memory_format=torch.channels_last)
    model = nn.parallel.DistributedDataParallel(plain) if is_ddp else plain
    batch = arguments.global_batch // world
    if "compile" in arguments.way:
        last = len(y[rank::world]) % batch
        model = compiled_in_advance(model, x, y, [batch, last] if last else [batch])
    optimizer = torch.optim.SGD(plain.parameters(), lr=0.01, momentum=arguments.momentum)
    model.train()
    for epoch in range(arguments.epochs):
        if is_ddp:
            torch.distributed.barrier()
        start, total, steps = time.perf_counter(), 0.0, 0
        order = torch.randperm(len(y), generator=torch.Generator().manual_seed(arguments.seed * 1000 + epoch))[rank::world]
        for index in order.split(batch):
            optimizer.zero_grad()
            loss = F.cross_entropy(model(x[index]), y[index])
            loss.backward()
            optimizer.step()
            total, steps = total + loss.detach(), steps + 1
        seconds = time.perf_counter() - start
        if rank == 0:
            tested = f" {idx.accuracy(plain, test_x, test_y):.4f}" if arguments.accuracy else ""
            print(f"epoch {seconds:.4f} {float(total) / steps:.4f}{tested}", flush=True)


if __name__ == "__main__":
    main()
