# SPDX-FileCopyrightText: 2026 The Lockstep authors
# SPDX-License-Identifier: MIT
"""The peer of launch/jobs/lenet.yaml: the program of the book "Dive into Deep Learning", section 13.5, as it is printed there.

LeNet from its parameters, made with scale 0.01; get_params, allreduce, split_batch and train_batch over a list of devices
(here all of them the CPU, as the book's try_gpu gives where there is no GPU); Fashion-MNIST in batches of a shuffled
loader, pixels in [0, 1]. What the book takes from its d2l package is written out. Prints one line an epoch:
"epoch SECONDS ACCURACY", seconds without the evaluation, as the book's timer counts them.
"""
import argparse
import os
import time

import torch
from torch import nn
from torch.nn import functional as F

from idx import load


def make_params(scale=0.01):
    return [
        torch.randn(size=(20, 1, 3, 3)) * scale, torch.zeros(20),
        torch.randn(size=(50, 20, 5, 5)) * scale, torch.zeros(50),
        torch.randn(size=(800, 128)) * scale, torch.zeros(128),
        torch.randn(size=(128, 10)) * scale, torch.zeros(10),
    ]


def lenet(X, params):
    h1 = F.avg_pool2d(F.relu(F.conv2d(X, params[0], params[1])), (2, 2), (2, 2))
    h2 = F.avg_pool2d(F.relu(F.conv2d(h1, params[2], params[3])), (2, 2), (2, 2))
    h3 = F.relu(torch.mm(h2.reshape(h2.shape[0], -1), params[4]) + params[5])
    return torch.mm(h3, params[6]) + params[7]


loss = nn.CrossEntropyLoss(reduction="none")


def get_params(params, device):
    new_params = [p.clone().to(device) for p in params]
    for p in new_params:
        p.requires_grad_()
    return new_params


def allreduce(data):
    for i in range(1, len(data)):
        data[0][:] += data[i].to(data[0].device)
    for i in range(1, len(data)):
        data[i][:] = data[0].to(data[i].device)


def split_batch(X, y, devices):
    return X.chunk(len(devices)), y.chunk(len(devices))  # as nn.parallel.scatter does


def sgd(params, lr, batch_size):
    with torch.no_grad():
        for param in params:
            param -= lr * param.grad / batch_size
            param.grad.zero_()


def train_batch(X, y, device_params, devices, lr):
    X_shards, y_shards = split_batch(X, y, devices)
    ls = [loss(lenet(X_shard, W), y_shard).sum() for X_shard, y_shard, W in zip(X_shards, y_shards, device_params)]
    for l in ls:
        l.backward()
    with torch.no_grad():
        for i in range(len(device_params[0])):
            allreduce([device_params[c][i].grad for c in range(len(devices))])
    for param in device_params:
        sgd(param, lr, X.shape[0])


def accuracy(params, X, y):
    with torch.no_grad():
        return sum(
            (lenet(X[i : i + 1000], params).argmax(1) == y[i : i + 1000]).sum().item() for i in range(0, len(y), 1000)
        ) / len(y)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", required=True, help="holds the four files of Fashion-MNIST, plain or .gz")
    parser.add_argument("--devices", type=int, default=1)
    parser.add_argument("--batch", type=int, default=256)
    parser.add_argument("--lr", type=float, default=0.2)
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--seed", type=int, default=1234)
    arguments = parser.parse_args()
    torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", "1")))
    torch.manual_seed(arguments.seed)
    X, y = load(arguments.data, "train")
    test_X, test_y = load(arguments.data, "t10k")
    devices = [torch.device("cpu")] * arguments.devices
    device_params = [get_params(params, d) for params in [make_params()] for d in devices]
    for _ in range(arguments.epochs):
        start = time.perf_counter()
        for index in torch.randperm(len(y)).split(arguments.batch):
            train_batch(X[index], y[index], device_params, devices, arguments.lr)
        seconds = time.perf_counter() - start
        print(f"epoch {seconds:.2f} {accuracy(device_params[0], test_X, test_y):.4f}", flush=True)


main()
