# SPDX-FileCopyrightText: 2026 The Lockstep authors
# SPDX-License-Identifier: MIT
"""Reads the files of MNIST and its kin, plain or .gz, for the peers in PyTorch, and judges these."""
import gzip
import os
import sys

import numpy as np
import torch


def read_idx(directory, name):
    path = os.path.join(directory, name)
    opener = open if os.path.exists(path) else gzip.open
    if opener is gzip.open and not os.path.exists(path + ".gz"):
        sys.exit(f"{path}: no such file, and no .gz of it: --data is the folder of the four files of a set like MNIST")
    with opener(path if opener is open else path + ".gz", "rb") as stream:
        data = stream.read()
    dimensions = [int.from_bytes(data[4 + 4 * i : 8 + 4 * i], "big") for i in range(data[3])]
    return np.frombuffer(data, np.uint8, offset=4 + 4 * len(dimensions)).reshape(dimensions)


def load(directory, part):
    """Images [sample, 1, row, column] from 0 to 1, and labels; `part` is train or t10k."""
    images = torch.from_numpy(read_idx(directory, part + "-images-idx3-ubyte").copy())
    labels = torch.from_numpy(read_idx(directory, part + "-labels-idx1-ubyte").astype(np.int64))
    return images.float().div_(255).unsqueeze(1), labels


def accuracy(model, x, y):
    model.eval()
    with torch.no_grad():
        correct = sum((model(x[i : i + 1000]).argmax(1) == y[i : i + 1000]).sum().item() for i in range(0, len(y), 1000))
    model.train()
    return correct / len(y)
