# SPDX-FileCopyrightText: 2026 The Lockstep authors
# SPDX-License-Identifier: MIT
"""Races training straight from a folder of JPEGs against PyTorch's way: Pillow in a DataLoader with two workers.

Each round trains a linear network one epoch with both, one after the other: cold (the system is asked to forget the
files first) and warm. Pictures are scaled to SIZE x SIZE by areas in both. Start-up and evaluation are not counted.
Prints samples/s of every round, and the ratio of the best of each. Needs torch, numpy and Pillow.

  PYTHON tests/bench/picture_loading.py [--pictures N] [--side N] [--size N] [--rounds N]
"""
import argparse
import json
import os
import subprocess
import sys
import tempfile
import time

import numpy
import torch
from PIL import Image

CLASSES, BATCH = 4, 64


def make_pictures(folder, count, side):
    random = numpy.random.default_rng(1)
    for half, pictures in (("train", count), ("test", 8)):
        for i in range(pictures):
            coarse = random.integers(0, 256, (side // 16, side // 16, 3), dtype=numpy.uint8)
            path = f"{folder}/{half}/{i % CLASSES}/{i:06}.jpg"
            os.makedirs(os.path.dirname(path), exist_ok=True)
            Image.fromarray(coarse).resize((side, side * 3 // 4), Image.Resampling.BICUBIC).save(path, quality=90)


def files_of(folder):
    return sorted((os.path.join(place, name), int(os.path.basename(place)))
                  for place, _, names in os.walk(f"{folder}/train") for name in names)


def forget(files):
    os.sync()
    for path, _ in files:
        with open(path, "rb") as file:
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


class Folder(torch.utils.data.Dataset):
    def __init__(self, files, size):
        self.files, self.size = files, size

    def __len__(self):
        return len(self.files)

    def __getitem__(self, i):
        path, label = self.files[i]
        with Image.open(path) as picture:
            scaled = picture.convert("RGB").resize((self.size, self.size), Image.Resampling.BOX)
        return (torch.from_numpy(numpy.asarray(scaled).copy()).permute(2, 0, 1).float() / 255 - 0.5) / 0.5, label


def with_torch(files, size):
    network = torch.nn.Linear(3 * size * size, CLASSES)
    optimizer = torch.optim.SGD(network.parameters(), lr=1e-6)
    loader = torch.utils.data.DataLoader(Folder(files, size), batch_size=BATCH, shuffle=True, num_workers=2)
    start = time.monotonic()
    for x, y in loader:
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(network(x.flatten(1)), y).backward()
        optimizer.step()
    return len(files) / (time.monotonic() - start)


def with_lockstep(program, folder, files, size, run):
    with open(f"{folder}/job.yaml", "w") as job:
        job.write(f"model: linear\ndata: {{set: pictures, root: {folder}, size: {size}, colour: true, mean: 0.5, std: 0.5, "
                  f"global_batch: {BATCH}}}\ntrain: {{epochs: 1, optimizer: {{lr: 0.000001}}}}\nparallel: {{device: cpu}}\n"
                  f"run: {{dir: {run}, report: false}}\n")
    subprocess.run([program, "train", f"{folder}/job.yaml"], check=True, stdout=subprocess.DEVNULL)
    with open(f"{run}/metrics.jsonl") as metrics:
        epochs = [line for line in map(json.loads, metrics) if line.get("event") == "epoch"]
    return len(files) / epochs[0]["train_seconds"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pictures", type=int, default=2000)
    parser.add_argument("--side", type=int, default=512, help="of each JPEG, in pixels (512)")
    parser.add_argument("--size", type=int, default=64, help="that they are scaled to (64)")
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    here = os.path.dirname(os.path.abspath(__file__))
    program = os.environ.get("LOCKSTEP_PROGRAM", f"{here}/../../build/release/lockstep")
    if not os.access(program, os.X_OK):
        sys.exit(f"{program} is not there: run launch/build release lockstep_program first")
    with tempfile.TemporaryDirectory() as folder:
        make_pictures(folder, options.pictures, options.side)
        files = files_of(folder)
        best = {}
        for i in range(options.rounds):
            for cold in (True, False):
                for name in ("lockstep", "torch"):
                    if cold:
                        forget(files)
                    speed = (with_torch(files, options.size) if name == "torch" else
                             with_lockstep(program, folder, files, options.size, f"{folder}/run-{i}-{cold}"))
                    best[name, cold] = max(speed, best.get((name, cold), 0))
                    print(f"round {i + 1} {'cold' if cold else 'warm'} {name}: {speed:.0f} samples/s", flush=True)
        for cold in (True, False):
            print(f"{'cold' if cold else 'warm'}: {best['lockstep', cold] / best['torch', cold]:.2f} times torch's samples/s")


if __name__ == "__main__":
    main()
