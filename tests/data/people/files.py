# SPDX-FileCopyrightText: 2026 The Lockstep authors
# SPDX-License-Identifier: MIT
"""IDX files as torchvision lays them, CIFAR's binary records, and its pickles as docs/data.md converts them."""
import gzip
import os
import pickle
import re
import struct
import subprocess
import sys

import numpy

from .cases import Want, case, random_of

DIGITS = [str(i) for i in range(10)]
CIFAR10 = ["airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck"]


def images(name, count, *shape):
    return random_of(name).integers(0, 256, (count, *shape), dtype=numpy.uint8)


def named(x, y, names):
    return [(names[label], row) for label, row in zip(y, x)]


# IDX.

def idx(array):
    array = numpy.asarray(array, "u1")
    return struct.pack(f">4B{array.ndim}I", 0, 0, 8, array.ndim, *array.shape) + array.tobytes()


def write_idx(folder, names=DIGITS, ending="", test="t10k", classes=None, first=0, size=(28, 28)):
    """Two halves, and the Want of their samples."""
    os.makedirs(folder, exist_ok=True)
    write = gzip.open if ending else open
    halves = {}
    for half, called, count in (("train", "train", 20), ("test", test, 10)):
        x, y = images(half, count, *size), numpy.arange(count) % 10 + first
        for kind, array in (("images-idx3", x), ("labels-idx1", y)):
            with write(f"{folder}/{called}-{kind}-ubyte{ending}", "wb") as file:
                file.write(idx(array))
        halves[half] = [(names[label], row) for label, row in zip(y, x)]
    if classes is not None:
        with open(f"{folder}/classes.txt", "wb") as file:
            file.write(classes.encode())
    return halves


IDX = {
    "plain": {}, "compressed": {"ending": ".gz"}, "called test-": {"test": "test"}, "small": {"size": (5, 4)},
    "classes.txt": {"classes": "\n".join(CIFAR10), "names": CIFAR10},
    "classes.txt with CRLF and a mark": {"classes": "\ufeff" + "\r\n".join(CIFAR10) + "\r\n", "names": CIFAR10},
}
for name, options in IDX.items():
    @case("idx", name)
    def _(folder, options=options):
        halves = write_idx(f"{folder}/files", **options)
        names = options.get("names", DIGITS)
        return Want(convert=["files"], job={"set": "idx", "root": "files"}, halves=halves, classes=names)

for name in ("MNIST", "FashionMNIST", "KMNIST"):
    for ending in ("", ".gz"):
        @case("idx", f"torchvision's {name}/raw{ending and ', compressed'}")
        def _(folder, name=name, ending=ending):
            halves = write_idx(f"{folder}/data/{name}/raw", ending=ending)
            root = f"data/{name}/raw"
            return Want(convert=[root], job={"set": "idx", "root": root}, halves=halves, classes=DIGITS)

for root in ("data", "data/MNIST"):
    @case("idx", f"mnist in torchvision's {root}")
    def _(folder, root=root):
        halves = write_idx(f"{folder}/data/MNIST/raw")
        return Want(job={"set": "mnist", "root": root}, halves=halves, classes=DIGITS, word="mnist")


@case("idx", "EMNIST's letters, which begin with 1")
def _(folder):
    names = [str(i) for i in range(11)]
    halves = write_idx(f"{folder}/files", first=1, names=names)
    return Want(job={"set": "idx", "root": "files"}, halves=halves, classes=names)


@case("idx", "classes.txt has a class without samples")
def _(folder):
    names = [*CIFAR10, "unicorn"]
    halves = write_idx(f"{folder}/files", names=names, classes="\n".join(names))
    return Want(job={"set": "idx", "root": "files"}, halves=halves, classes=names, said="unicorn")


def write(path, content):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as file:
        file.write(content)


# CIFAR.

def cifar_halves():
    """Ten records in each of five files, and ten to test with."""
    files = {f"data_batch_{i}": images(f"batch {i}", 10, 3, 32, 32) for i in range(1, 6)}
    files["test_batch"] = images("test", 10, 3, 32, 32)
    y = numpy.random.default_rng(7).permutation(10)
    train = [sample for name, x in files.items() if name != "test_batch" for sample in named(x, y, CIFAR10)]
    return files, y, {"train": train, "test": named(files["test_batch"], y, CIFAR10)}


def cifar10(root, **want):
    return Want(convert=["cifar10"], job={"set": "cifar10", "root": root}, data=root, classes=CIFAR10, **want)


def write_binary(folder):
    files, y, halves = cifar_halves()
    for name, x in files.items():
        write(f"{folder}/{name}.bin", b"".join(bytes([label]) + row.tobytes() for label, row in zip(y, x)))
    return halves


for place in ("data", "data/cifar10", "data/cifar-10-batches-bin"):
    @case("cifar", f"binary records in {place}")
    def _(folder, place=place):
        halves = write_binary(f"{folder}/{place}")
        write(f"{folder}/{place}/batches.meta.txt", "\n".join(CIFAR10).encode() + b"\n\n")
        return cifar10(f"{folder}/data", halves=halves)


def convert_pickles(folder, pickles):
    """Writes them as in the version for Python, and runs the lines of docs/data.md there."""
    for name, value in pickles.items():
        write(f"{folder}/{name}", pickle.dumps(value, 2))
    with open(f"{os.path.dirname(__file__)}/../../../docs/data.md", encoding="utf-8") as page:
        lines = re.search(r"```python\n([^`]*pickle\.load[^`]*)```", page.read()).group(1)
    subprocess.run([sys.executable, "-c", lines], cwd=folder, check=True)


@case("cifar", "pickles, converted")
def _(folder):
    files, y, halves = cifar_halves()
    convert_pickles(f"{folder}/data/cifar-10-batches-py", {
        "batches.meta": {"label_names": CIFAR10},
        **{name: {"labels": [int(label) for label in y], "data": x.reshape(10, -1)} for name, x in files.items()}})
    return cifar10(f"{folder}/data", halves=halves)


@case("cifar", "CIFAR-100's pickles, converted")
def _(folder):
    names = [f"kind {i:02}" for i in range(100)]
    halves, pickles = {}, {}
    for half, count in (("train", 200), ("test", 100)):
        x, y = images(half, count, 3, 32, 32), [i % 100 for i in range(count)]
        pickles[half] = {"fine_labels": y, "coarse_labels": [i // 5 for i in y], "data": x.reshape(count, -1)}
        halves[half] = named(x, y, names)
    root = f"{folder}/data"
    convert_pickles(f"{root}/cifar-100-python", pickles)
    write(f"{root}/cifar-100-python/fine_label_names.txt", "\n".join(names).encode())
    return Want(convert=["cifar100"], job={"set": "cifar100", "root": root}, data=root, halves=halves, classes=names)
