# SPDX-FileCopyrightText: 2026 The Lockstep authors
# SPDX-License-Identifier: MIT
"""Races training straight from JPEGs against PyTorch's ways: from folders torchvision's ImageFolder in a DataLoader, from
tars the webdataset package in its WebLoader, both with two workers.

Each round trains a linear network one epoch with each, one after the other: cold (the system is asked to forget all
files first) and warm. Pictures are scaled to SIZE x SIZE by areas in all. The start of a program and evaluation are not
counted, that of their workers is.
Prints samples/s of every round, and the median over the rounds of ours as a multiple of theirs. Needs torch,
torchvision, webdataset, numpy and Pillow.

  PYTHON tests/bench/picture_loading.py [--pictures N] [--side N] [--size N] [--rounds N]
"""
import argparse
import glob
import io
import json
import os
import statistics
import subprocess
import sys
import tarfile
import tempfile
import time

import numpy
import torch
import torchvision
import webdataset
from PIL import Image

CLASSES, BATCH, WORKERS, TARS = 4, 64, 2, 4
HERE = os.path.dirname(os.path.abspath(__file__))
PROGRAM = os.environ.get("LOCKSTEP_PROGRAM", f"{HERE}/../../build/release/lockstep")


def make_pictures(place, count, side):
    """Writes the same pictures as folders/HALF/CLASS/NAME.jpg and as entries of tars/HALF-N.tar, a label beside each."""
    random = numpy.random.default_rng(1)
    os.makedirs(f"{place}/tars")
    for half, pictures in (("train", count), ("test", 8)):
        tars = [tarfile.open(f"{place}/tars/{half}-{i}.tar", "w") for i in range(TARS if half == "train" else 1)]
        for i in range(pictures):
            coarse = random.integers(0, 256, (side // 16, side // 16, 3), dtype=numpy.uint8)
            path = f"{place}/folders/{half}/{i % CLASSES}/{i:06}.jpg"
            os.makedirs(os.path.dirname(path), exist_ok=True)
            Image.fromarray(coarse).resize((side, side * 3 // 4), Image.Resampling.BICUBIC).save(path, quality=90)
            tar = tars[i * len(tars) // pictures]
            tar.add(path, f"{i:06}.jpg")
            label = tarfile.TarInfo(f"{i:06}.cls")
            label.size = 1
            tar.addfile(label, io.BytesIO(str(i % CLASSES).encode()))
        for tar in tars:
            tar.close()


def forget(place):
    os.sync()
    try:
        with open("/proc/sys/vm/drop_caches", "w") as drop:
            drop.write("3\n")
    except OSError:  # not root, or in a container
        for folder, _, names in os.walk(place):
            for name in names:
                with open(f"{folder}/{name}", "rb") as file:
                    os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def transform(size):
    transforms = torchvision.transforms
    return transforms.Compose([
        transforms.Resize((size, size), transforms.InterpolationMode.BOX),
        transforms.ToTensor(), transforms.Normalize([0.5] * 3, [0.5] * 3)])


def image_folder(place, size):
    folder = torchvision.datasets.ImageFolder(f"{place}/folders/train", transform(size))
    return torch.utils.data.DataLoader(folder, batch_size=BATCH, shuffle=True, num_workers=WORKERS)


def web_dataset(place, size):
    tars = sorted(glob.glob(f"{place}/tars/train-*.tar"))
    samples = (webdataset.WebDataset(tars, shardshuffle=TARS).shuffle(1000).decode("pil").to_tuple("jpg", "cls")
               .map_tuple(transform(size), int).batched(BATCH))
    return webdataset.WebLoader(samples, batch_size=None, num_workers=WORKERS)


def with_torch(loader, size):
    network = torch.nn.Linear(3 * size * size, CLASSES)
    optimizer = torch.optim.SGD(network.parameters(), lr=1e-6)
    start, seen = time.monotonic(), 0
    for x, y in loader:
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(network(x.flatten(1)), torch.as_tensor(y)).backward()
        optimizer.step()
        seen += len(x)
    return seen, seen / (time.monotonic() - start)


def with_lockstep(place, data, size):
    run = tempfile.mkdtemp(dir=place)
    with open(f"{place}/job.yaml", "w") as job:
        job.write(f"model: linear\ndata: {{{data}, size: {size}, colour: true, mean: 0.5, std: 0.5, global_batch: {BATCH}}}\n"
                  f"train: {{epochs: 1, optimizer: {{lr: 0.000001}}}}\nparallel: {{device: cpu}}\n"
                  f"run: {{dir: {run}, report: false}}\n")
    subprocess.run([PROGRAM, "train", f"{place}/job.yaml"], check=True, stdout=subprocess.DEVNULL)
    with open(f"{run}/metrics.jsonl") as metrics:
        epoch = next(line for line in map(json.loads, metrics) if line.get("event") == "epoch")
    return epoch["train_samples"], epoch["train_samples"] / epoch["train_seconds"]


def race(place, options):
    """(what, cold or warm) → the ratios of the rounds."""
    ours = {"folders": f"set: pictures, root: {place}/folders", "tars": f"set: webdataset, root: {place}/tars"}
    theirs = {"folders": ("ImageFolder", image_folder), "tars": ("webdataset", web_dataset)}
    with_lockstep(place, ours["tars"], options.size)  # makes the index of each tar
    ratios = {}
    for i in range(options.rounds):
        for what in ours:
            name, loader = theirs[what]
            for state in ("cold", "warm"):
                speeds = []
                for racer in ("lockstep", name):
                    if state == "cold":
                        forget(place)
                    seen, speed = (with_lockstep(place, ours[what], options.size) if racer == "lockstep" else
                                   with_torch(loader(place, options.size), options.size))
                    if seen != options.pictures:
                        sys.exit(f"{racer} on {what}: {seen} of {options.pictures} samples were trained on")
                    speeds.append(speed)
                    print(f"round {i + 1} {what} {state} {racer}: {speed:.0f} samples/s", flush=True)
                ratios.setdefault((what, name, state), []).append(speeds[0] / speeds[1])
    return ratios


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pictures", type=int, default=2000)
    parser.add_argument("--side", type=int, default=512, help="of each JPEG, in pixels (512)")
    parser.add_argument("--size", type=int, default=64, help="that they are scaled to (64)")
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    if not os.access(PROGRAM, os.X_OK):
        sys.exit(f"{PROGRAM} is not there: run launch/build release lockstep_program first")
    with tempfile.TemporaryDirectory() as place:
        make_pictures(place, options.pictures, options.side)
        for (what, name, state), of_rounds in race(place, options).items():
            print(f"{what}, {state}: {statistics.median(of_rounds):.2f} times {name}'s samples/s "
                  f"({min(of_rounds):.2f} to {max(of_rounds):.2f})")


if __name__ == "__main__":
    main()
