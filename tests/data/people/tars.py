# SPDX-FileCopyrightText: 2026 The Lockstep authors
# SPDX-License-Identifier: MIT
"""Archives as WebDataset's writers and tar make them."""
import io
import json
import os
import tarfile

from PIL import Image

from .cases import Want, case
from .files import images, write


def picture_file(name, kind="PNG"):
    out = io.BytesIO()
    Image.fromarray(images(name, 6, 8, 3)).save(out, kind)
    return out.getvalue()


def write_tar(path, entries, mode="w", **options):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with tarfile.open(path, mode, **options) as archive:
        for name, content in entries:
            info = tarfile.TarInfo(name)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))


def entries(half, count=6, key="{half}{i:04}", label=str, ending=".png", cls=".cls", start=0):
    """Pictures with their labels, which alternate."""
    for i in range(start, start + count):
        name = key.format(half=half, i=i)
        yield name + ending, picture_file(f"{half} {i}", "JPEG" if ending.endswith("g") and "j" in ending else "PNG")
        yield name + cls, label(i % 2).encode()


def halves_of(train=6, test=6, names=("0", "1")):
    return {half: [(names[i % 2], None) for i in range(count)] for half, count in (("train", train), ("test", test))}


def archived(root="tars", **want):
    return Want(job={"set": "webdataset", "root": root, "colour": True}, **{"halves": halves_of(), **want})


ENTRIES = {
    "numbers": ({}, {}),
    "numbers and a line end": ({"label": lambda label: f"{label}\n"}, {}),
    "folders before keys": ({"key": "./a.b/{half}/{i:04}"}, {}),
    "spaces in keys": ({"key": "my picture {i}"}, {}),
    "JPEGs": ({"ending": ".jpg"}, {}),
    "endings in capitals": ({"ending": ".PNG"}, {"word": ".PNG"}),
    "names": ({"label": lambda label: ["cat", "dog"][label]}, {"halves": halves_of(names=("cat", "dog"))}),
    "names in another order": ({"label": lambda label: ["dog", "cat"][label]}, {"halves": halves_of(names=("dog", "cat"))}),
    "a point in keys": ({"key": "img.{i:04}"}, {"halves": None, "word": "dot"}),
    "numbers with a fraction": ({"label": lambda label: f"{label}.5"}, {"halves": None, "word": "cls"}),
    "numbers below 0": ({"label": lambda label: str(-label)}, {"halves": None, "word": "cls"}),
    "nothing in .cls": ({"label": lambda label: ""}, {"halves": None, "word": "cls"}),
    "one class alone": ({"label": lambda label: "0"}, {"halves": None, "word": "class"}),
}
for name, (options, want) in ENTRIES.items():
    @case("webdataset", f"entries: {name}")
    def _(folder, options=options, want=want):
        for half in ("train", "test"):
            write_tar(f"{folder}/tars/{half}-000.tar", entries(half, **options))
        return archived(**want)

NAMES = {
    "train.tar and test.tar": ("train.tar", "test.tar"),
    "two of each": ("train-000.tar train-001.tar", "test-000.tar test-001.tar"),
    "train and val": ("train-000.tar", "val-000.tar"),
    "a set's name before": ("imagenet-train-000000.tar", "imagenet-val-000000.tar"),
    "a set's name before, with bars": ("cifar10_train.tar", "cifar10_test.tar"),
    "folders": ("train/00000.tar", "test/00000.tar"),
    "Hugging Face's": ("data/train-00000-of-00001.tar", "data/validation-00000-of-00001.tar"),
    "training and validation": ("training-0.tar", "validation-0.tar"),
}
for name, (train, test) in NAMES.items():
    @case("webdataset", f"archives: {name}")
    def _(folder, train=train, test=test):
        for half, files in (("train", train.split()), ("test", test.split())):
            for i, file in enumerate(files):
                write_tar(f"{folder}/tars/{file}", entries(half, 6 // len(files), start=6 // len(files) * i))
        return archived(word="tar")


@case("webdataset", "archives: numbers alone")
def _(folder):
    for i in range(2):
        write_tar(f"{folder}/tars/0000{i}.tar", entries("train", 10, start=10 * i))
    return archived(halves=None, samples=[(str(i % 2), None) for i in range(20)], word="tar")


FORMS = {"pax": tarfile.PAX_FORMAT, "ustar": tarfile.USTAR_FORMAT, "GNU": tarfile.GNU_FORMAT}
for name, form in FORMS.items():
    @case("webdataset", f"{name}, with long names")
    def _(folder, form=form):
        for half in ("train", "test"):
            write_tar(f"{folder}/tars/{half}.tar", entries(half, key="a" * 60 + "/" + "b" * 60 + "{i}"), format=form)
        return archived()


@case("webdataset", "compressed")
def _(folder):
    for half in ("train", "test"):
        write_tar(f"{folder}/tars/{half}.tar.gz", entries(half), "w:gz")
    return archived(halves=None, word="tar")


@case("webdataset", "cut off")
def _(folder):
    for half in ("train", "test"):
        write_tar(f"{folder}/tars/{half}.tar", entries(half))
    os.truncate(f"{folder}/tars/train.tar", 3000)
    return archived(halves=None, word="train.tar")


@case("webdataset", "a sample without a label")
def _(folder):
    for half in ("train", "test"):
        write_tar(f"{folder}/tars/{half}.tar", list(entries(half))[:-1])
    return archived(halves=None, word="cls")


@case("webdataset", "names from .json")
def _(folder):
    for half in ("train", "test"):
        kinds = entries(half, cls=".json", label=lambda label: json.dumps({"kind": ["dog", "cat"][label]}))
        write_tar(f"{folder}/tars/{half}.tar", kinds)
    want = archived(halves=halves_of(names=("dog", "cat")))
    want.job["label"] = "kind"
    return want


@case("webdataset", "classes.txt")
def _(folder):
    for half in ("train", "test"):
        write_tar(f"{folder}/tars/{half}.tar", entries(half))
    write(f"{folder}/tars/classes.txt", b"dog\ncat\n")
    return archived(halves=halves_of(names=("dog", "cat")), classes=["dog", "cat"])


@case("webdataset", "made by tar")
def _(folder):
    for half in ("train", "test"):
        for name, content in entries(half):
            write(f"{folder}/{half}/{name}", content)
        os.makedirs(f"{folder}/tars", exist_ok=True)
        assert os.system(f"tar -C '{folder}/{half}' --sort=name -cf '{folder}/tars/{half}.tar' .") == 0
    return archived()
