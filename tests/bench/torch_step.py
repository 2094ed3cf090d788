# SPDX-FileCopyrightText: 2026 The Lockstep authors
# SPDX-License-Identifier: MIT
"""The rival of versus_torch_step: a training step of a ResNet in PyTorch on one core, the batch in memory.

Prints the median milliseconds of a step: forward, loss, backward and SGD with momentum. --way: eager, channels_last,
compile or channels_last+compile; --precision bf16: under autocast. Exit code 69: this PyTorch cannot. --shards DIR
writes instead a small set of noise of 3x224x224 for Lockstep (docs/shard-format.md).
"""
import argparse
import hashlib
import json
import os
import statistics
import sys
import time


def write_half(directory, name, samples):
    image = os.urandom(3 * 224 * 224)  # one for all: nobody learns anything here
    images, labels = image * samples, b"".join((i % 1000).to_bytes(4, "little") for i in range(samples))
    blocks = b"".join(hashlib.sha256(images[i : i + 262144]).digest() for i in range(0, len(images), 262144))
    for suffix, content in (("00000.shard", images), ("labels.u32", labels), ("blocks.sha256", blocks)):
        with open(f"{directory}/{name}-{suffix}", "wb") as file:
            file.write(content)
    planes = [image[c * 50176 : (c + 1) * 50176] for c in range(3)]
    return {"samples": samples, "labels_sha256": hashlib.sha256(labels).hexdigest(),
            "blocks_sha256": hashlib.sha256(blocks).hexdigest(), "values": [samples * sum(p) for p in planes],
            "squares": [samples * sum(x * x for x in p) for p in planes]}


def write_shards(directory):
    os.makedirs(directory, exist_ok=True)
    index = {"lockstep_shards": 1, "channels": 3, "height": 224, "width": 224, "classes": 1000, "class_names": [],
             "block_bytes": 262144, "shard_bytes": 1 << 30, "train": write_half(directory, "train", 256),
             "test": write_half(directory, "test", 16)}
    line = json.dumps(index)
    with open(f"{directory}/shards.index", "w") as file:
        file.write(f"{line}\n{hashlib.sha256(line.encode()).hexdigest()}\n")


def make(name):
    import torch

    if name == "resnet18":
        import torchvision

        return torchvision.models.resnet18(), torch.rand(16, 3, 224, 224), torch.arange(16)
    from torch_ddp import MODELS

    return MODELS[name](), torch.rand(64, 1, 28, 28), torch.arange(64) % 10


def measure(name, way, precision, steps):
    import torch
    import torch.nn.functional as F

    if "compile" in way and not hasattr(torch, "compile"):
        sys.exit(69)
    torch.set_num_threads(1)
    model, x, y = make(name)
    if "channels_last" in way:
        model, x = model.to(memory_format=torch.channels_last), x.to(memory_format=torch.channels_last)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    forward = torch.compile(model) if "compile" in way else model
    seconds = []
    for _ in range(steps + 3):
        start = time.perf_counter()
        optimizer.zero_grad()
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=precision == "bf16"):
            logits = forward(x)
        F.cross_entropy(logits.float(), y).backward()
        optimizer.step()
        seconds.append(time.perf_counter() - start)
    return 1000 * statistics.median(seconds[3:])


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", nargs="?", choices=["resnet8", "resnet20", "resnet18"], default="resnet8")
    parser.add_argument("--way", default="eager")
    parser.add_argument("--precision", choices=["fp32", "bf16"], default="fp32")
    parser.add_argument("--steps", type=int, default=5)
    parser.add_argument("--shards", metavar="DIR")
    arguments = parser.parse_args()
    if arguments.shards:
        write_shards(arguments.shards)
    else:
        print(f"{measure(arguments.model, arguments.way, arguments.precision, arguments.steps):.2f}")


if __name__ == "__main__":
    main()
