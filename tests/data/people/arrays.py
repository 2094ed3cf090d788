# SPDX-FileCopyrightText: 2026 The Lockstep authors
# SPDX-License-Identifier: MIT
"""Arrays as numpy, Keras and MedMNIST save them."""
import numpy

from .cases import Want, case, random_of


def pixels(name, *shape):
    return random_of(name).integers(0, 256, shape, dtype=numpy.uint8)


def labels(count, classes=3):
    return numpy.arange(count) % classes


def samples_of(x, y):
    return [(str(label), row) for label, row in zip(numpy.ravel(y), numpy.asarray(x, "f8"))]


def arrays(folder, file="set.npz", options=(), save=numpy.savez, want=None, **named):
    save(f"{folder}/{file}", **named)
    return Want(convert=[file, *options], **(want or {}))


# x and y, split by the program.
for kind in ("f4", "f8", "i1", "u1", "i2", "i4", "i8", "?"):
    @case("npz", f"x of {kind} and y")
    def _(folder, kind=kind):
        x = (random_of(kind).normal(size=(15, 4)) * 50).astype(kind)
        return arrays(folder, x=x, y=labels(15), want={"samples": samples_of(x, labels(15)), "shape": (4, 1, 1)})

for of_x, of_y in (("X", "y"), ("features", "labels"), ("data", "label")):
    @case("npz", f"{of_x} and {of_y}")
    def _(folder, of_x=of_x, of_y=of_y):
        x = random_of(of_x).normal(size=(15, 4)).astype("f4")
        return arrays(folder, **{of_x: x, of_y: labels(15)}, want={"samples": samples_of(x, labels(15))})

LABELS = {
    "names": (numpy.array(["bee", "ant", "wasp"])[labels(15)], str),
    "floats 1.0": (labels(15).astype("f4"), lambda y: str(int(y))),
    "a column": (labels(15).reshape(-1, 1), str),
    "True and False": (labels(15, 3) == 1, lambda y: str(int(y))),
}
for name, (y, classes) in LABELS.items():
    @case("npz", f"labels: {name}")
    def _(folder, name=name, y=y, classes=classes):
        x = random_of(name).normal(size=(15, 4)).astype("f4")
        return arrays(folder, x=x, y=y, want={"samples": [(classes(label), row) for label, row in zip(y.ravel(), x)]})

X = random_of("kinds of x").normal(size=(15, 4))


@case("npz", "compressed")
def _(folder):
    return arrays(folder, x=X, y=labels(15), save=numpy.savez_compressed, want={"samples": samples_of(X, labels(15))})


@case("npz", "y told")
def _(folder):
    return arrays(folder, x=X, target=labels(15), options=["--label", "target"], want={"samples": samples_of(X, labels(15))})


# Pictures in arrays.
@case("npz", "channels first")
def _(folder):
    x = pixels("first", 15, 3, 8, 6)
    return arrays(folder, x=x, y=labels(15), want={"samples": samples_of(x, labels(15)), "shape": (3, 8, 6)})


for channels in (1, 3):
    @case("npz", f"{channels} channels last")
    def _(folder, channels=channels):
        x = pixels("last", 15, 8, 8, channels)
        return arrays(folder, x=x, y=labels(15), want={"samples": samples_of(x, labels(15)), "said": "channels"})


@case("npz", "rows and columns alone")
def _(folder):
    x = pixels("flat", 15, 8, 8)
    return arrays(folder, x=x, y=labels(15), want={"samples": samples_of(x, labels(15)), "word": "x"})


def channels_first(x):
    return numpy.moveaxis(x, -1, 1) if x.ndim == 4 else x[:, None]


def halves_of(named):
    return {half: samples_of(channels_first(x), y) for half, (x, y) in named.items()}


KERAS = {
    "mnist.npz": ((8, 8), numpy.uint8, (15,), "u1"),
    "in colour": ((8, 8, 3), numpy.uint8, (15,), "u1"),
    "cifar's labels in a column": ((8, 8, 3), numpy.uint8, (15, 1), "u1"),
    "long labels": ((8, 8), numpy.uint8, (15,), "i8"),
}
for name, (shape, kind, of_labels, of_kind) in KERAS.items():
    @case("keras", name)
    def _(folder, name=name, shape=shape, of_labels=of_labels, of_kind=of_kind):
        x_train, x_test = pixels(name, 15, *shape), pixels(name + "test", 6, *shape)
        y_train, y_test = labels(15).astype(of_kind), labels(6).astype(of_kind)
        return arrays(folder, "mnist.npz", x_train=x_train, y_train=y_train.reshape(of_labels), x_test=x_test, y_test=y_test,
                      want={"halves": halves_of({"train": (x_train, y_train), "test": (x_test, y_test)})})


@case("keras", "test labels that training lacks")
def _(folder):
    x = pixels("lacks", 6, 8, 8)
    halves = halves_of({"train": (x, labels(6)), "test": (x, labels(6) + 5)})
    return arrays(folder, x_train=x, y_train=labels(6), x_test=x, y_test=labels(6) + 5, want={"halves": halves, "word": "5"})


for name, shape in (("grey", (8, 8)), ("in colour", (8, 8, 3))):
    @case("medmnist", name)
    def _(folder, name=name, shape=shape):
        sizes = {"train": 15, "val": 6, "test": 9}
        images = {half: pixels(name + half, count, *shape) for half, count in sizes.items()}
        named = {f"{half}_images": x for half, x in images.items()} | \
                {f"{half}_labels": labels(count).reshape(-1, 1) for half, count in sizes.items()}
        halves = {"validation" if half == "val" else half: (x, labels(len(x))) for half, x in images.items()}
        return arrays(folder, "pathmnist.npz", **named, want={"halves": halves_of(halves)})


@case("medmnist", "several labels")
def _(folder):
    named, halves = {}, {}
    for half in ("train", "val", "test"):
        x, y = pixels(half, 6, 8, 8), pixels(half, 6, 4) % 2
        named |= {f"{half}_images": x, f"{half}_labels": y}
        names = ["+".join(str(i) for i in numpy.flatnonzero(row)) for row in y]
        halves["validation" if half == "val" else half] = list(zip(names, x))
    return arrays(folder, "chestmnist.npz", **named,
                  want={"halves": halves, "classes": list("0123"), "word": "labels", "is_trained": False})


# .npy.
@case("npy", "features and labels")
def _(folder):
    numpy.save(f"{folder}/x.npy", X)
    numpy.save(f"{folder}/y.npy", labels(15))
    return Want(convert=["x.npy", "--label", "y.npy"], samples=samples_of(X, labels(15)))


@case("npy", "a record array")
def _(folder):
    numpy.save(f"{folder}/x.npy", numpy.array([(1, 2.0)] * 10, dtype=[("a", "i4"), ("b", "f8")]))
    numpy.save(f"{folder}/y.npy", labels(10))
    return Want(convert=["x.npy", "--label", "y.npy"], word="x.npy")
