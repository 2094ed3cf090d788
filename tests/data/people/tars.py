# SPDX-FileCopyrightText: 2026 The Lockstep authors
# SPDX-License-Identifier: MIT
"""Archives as WebDataset's writers and tar make them."""
import io
import os
import tarfile

from PIL import Image

from .cases import Want, case
from .files import images, write


def picture_file(name):
    out = io.BytesIO()
    Image.fromarray(images(name, 6, 8, 3)).save(out, "PNG")
    return out.getvalue()


def write_tar(path, entries, **options):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with tarfile.open(path, "w", **options) as archive:
        for name, content in entries:
            info = tarfile.TarInfo(name)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))


def entries(half, key="{half}{i:04}", label=str):
    """Pictures with their labels, which alternate."""
    for i in range(6):
        name = key.format(half=half, i=i)
        yield name + ".png", picture_file(f"{half} {i}")
        yield name + ".cls", label(i % 2).encode()


def halves_of(names=("0", "1")):
    return {half: [(names[i % 2], None) for i in range(6)] for half in ("train", "test")}


def archived(**want):
    return Want(job={"set": "webdataset", "root": "tars", "colour": True}, **{"halves": halves_of(), **want})


ENTRIES = {
    "numbers": ({}, {}),
    "folders before keys": ({"key": "./a.b/{half}/{i:04}"}, {}),
    "spaces in keys": ({"key": "my picture {i}"}, {}),
    "names": ({"label": lambda label: ["cat", "dog"][label]}, {"halves": halves_of(names=("cat", "dog"))}),
    "names in another order": ({"label": lambda label: ["dog", "cat"][label]}, {"halves": halves_of(names=("dog", "cat"))}),
    "one class alone": ({"label": lambda label: "0"}, {"halves": None, "word": "class"}),
}
for name, (options, want) in ENTRIES.items():
    @case("webdataset", f"entries: {name}")
    def _(folder, options=options, want=want):
        for half in ("train", "test"):
            write_tar(f"{folder}/tars/{half}-000.tar", entries(half, **options))
        return archived(**want)


FORMS = {"pax": tarfile.PAX_FORMAT, "ustar": tarfile.USTAR_FORMAT, "GNU": tarfile.GNU_FORMAT}
for name, form in FORMS.items():
    @case("webdataset", f"{name}, with long names")
    def _(folder, form=form):
        for half in ("train", "test"):
            write_tar(f"{folder}/tars/{half}.tar", entries(half, key="a" * 60 + "/" + "b" * 60 + "{i}"), format=form)
        return archived()


@case("webdataset", "classes.txt")
def _(folder):
    for half in ("train", "test"):
        write_tar(f"{folder}/tars/{half}.tar", entries(half))
    write(f"{folder}/tars/classes.txt", b"dog\ncat\n")
    return archived(halves=halves_of(names=("dog", "cat")), classes=["dog", "cat"])
