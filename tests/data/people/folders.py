# SPDX-FileCopyrightText: 2026 The Lockstep authors
# SPDX-License-Identifier: MIT
"""Folders of pictures, as people sort them."""
import os

from .cases import case
from .pictures import ANIMALS, fill, picture, samples_of, save, shown, sorted_folder


# Sizes.
def of_two_sizes(folder):
    paths = fill(f"{folder}/photos")
    paths["cat"][0] = save(f"{folder}/photos/cat/0.png", picture("larger", (16, 12)))
    return paths


@case("folders", "two sizes")
def _(folder):
    of_two_sizes(folder)
    return sorted_folder(word="size")


@case("folders", "two sizes, scaled")
def _(folder):
    paths = of_two_sizes(folder)
    samples = [(name, None if path == paths["cat"][0] else shown(path)) for name, files in paths.items() for path in files]
    return sorted_folder(options=("--colour", "--size", "8x6"), samples=samples, shape=(3, 6, 8))


# How people sort them.
@case("folders", "one folder deeper")
def _(folder):
    paths = {animal: fill(f"{folder}/photos/{animal}", ["batch1"])["batch1"] for animal in ANIMALS}
    return sorted_folder(paths)


@case("folders", "some of them deeper")
def _(folder):
    paths = fill(f"{folder}/photos", count=2)
    paths["cat"] += fill(f"{folder}/photos/cat", ["more", "most"], count=4)["more"]
    paths["cat"] += [f"{folder}/photos/cat/most/{i}.png" for i in range(4)]
    paths["bee"] += fill(f"{folder}/photos/bee/a/b", ["c"], count=3)["c"]
    paths["dog"] += fill(f"{folder}/photos/dog", ["x"], count=3)["x"]
    return sorted_folder(paths)


HALVES = {
    "train, test": {"train": "train", "test": "test"},
    "Train, Test": {"Train": "train", "Test": "test"},
    "TRAIN, TEST": {"TRAIN": "train", "TEST": "test"},
    "training, testing": {"training": "train", "testing": "test"},
    "training, validation": {"training": "train", "validation": "test"},
    "train, val": {"train": "train", "val": "test"},
    "train, valid": {"train": "train", "valid": "test"},
    "Train, Valid, Test": {"Train": "train", "Valid": "validation", "Test": "test"},
    "train, val, test": {"train": "train", "val": "validation", "test": "test"},
    "train, validation, test": {"train": "train", "validation": "validation", "test": "test"},
}
for name, halves in HALVES.items():
    @case("halves", name)
    def _(folder, halves=halves):
        found = {}
        for called, half in halves.items():
            files = {animal: [save(f"{folder}/photos/{called}/{animal}/{i}.png", picture(f"{half} {animal} {i}"))
                              for i in range({"train": 4, "test": 2, "validation": 1}[half])] for animal in ANIMALS}
            found[half] = samples_of(files)
        return sorted_folder(halves=found, word=next(iter(halves)))


@case("halves", "train alone")
def _(folder):
    return sorted_folder(fill(f"{folder}/photos/train"), said="train/", word="train")


@case("halves", "a class that is tested alone")
def _(folder):
    fill(f"{folder}/photos/train")
    fill(f"{folder}/photos/test", [*ANIMALS, "eagle"], 2)
    return sorted_folder(word="eagle")


@case("halves", "a class that is trained alone")
def _(folder):
    halves = {"train": samples_of(fill(f"{folder}/photos/train")),
              "test": samples_of(fill(f"{folder}/photos/test", ["bee", "cat"], 2))}
    return sorted_folder(halves=halves, said="dog", with_job=False)


@case("halves", "the same picture in both")
def _(folder):
    halves = {half: samples_of(fill(f"{folder}/photos/{half}", count=2)) for half in ("train", "test")}
    return sorted_folder(halves=halves, said="training half", with_job=False)


@case("folders", "one picture under two labels")
def _(folder):
    paths = fill(f"{folder}/photos")
    for name in ("bee", "cat"):
        paths[name][0] = save(f"{folder}/photos/{name}/0.png", picture("the same"))
    return sorted_folder(paths, said="two labels", with_job=False)


STRAYS = {"Thumbs.db": b"\x00", "notes.txt": b"words", "labels.csv": b"a,b\n", "cat/notes.txt": b"words",
          "cat/cat.json": b"{}", "cat/film.mp4": b"\x00"}
for name, content in STRAYS.items():
    @case("folders", f"{name} beside them")
    def _(folder, name=name, content=content):
        paths = fill(f"{folder}/photos")
        with open(f"{folder}/photos/{name}", "wb") as file:
            file.write(content)
        return sorted_folder(paths, said="left out")


for name in (".DS_Store", "cat/._0.png", ".git/config"):
    @case("folders", f"{name} beside them")
    def _(folder, name=name):
        paths = fill(f"{folder}/photos")
        os.makedirs(os.path.dirname(f"{folder}/photos/{name}"), exist_ok=True)
        with open(f"{folder}/photos/{name}", "wb") as file:
            file.write(b"\x00\x05\x16\x07")
        return sorted_folder(paths)


@case("folders", "a class without pictures")
def _(folder):
    paths = fill(f"{folder}/photos")
    os.mkdir(f"{folder}/photos/eagle")
    return sorted_folder(paths, said="eagle", word="eagle")


@case("folders", "one class alone")
def _(folder):
    fill(f"{folder}/photos", ["cat"])
    return sorted_folder(word="class")


@case("folders", "pictures in no folder")
def _(folder):
    fill(folder, ["photos"])
    return sorted_folder(word="folder")


@case("folders", "a link to a folder, and to a picture")
def _(folder):
    paths = fill(f"{folder}/elsewhere", ["cat"])
    paths |= fill(f"{folder}/photos", ["bee", "dog"])
    os.symlink(f"{folder}/elsewhere/cat", f"{folder}/photos/cat")
    os.remove(paths["dog"][0])
    save(f"{folder}/elsewhere/a.png", picture("dog 0"))
    os.symlink(f"{folder}/elsewhere/a.png", paths["dog"][0])
    return sorted_folder(paths)


NAMES = {"spaces": ["red fox", "grey wolf"], "letters beyond ASCII": ["Käfer", "Ёж", "猫"],
         "numbers": [str(i) for i in range(11)], "points": ["v1.0", "v1.1"], "capitals": ["Cat", "cat"],
         "quotes": ["it's", 'a "b"'], "a formula": ["=1+1", "-x"],
         "braces": ["{0}", "%s"]}
for name, classes in NAMES.items():
    @case("folders", f"names: {name}")
    def _(folder, classes=classes):
        return sorted_folder(fill(f"{folder}/photos", classes))


@case("folders", "a name with a line end")
def _(folder):
    fill(f"{folder}/photos", ["bee", "ca\nt"])
    return sorted_folder(word="rename")


@case("folders", "what macOS leaves in a zip")
def _(folder):
    paths = fill(f"{folder}/photos")
    os.makedirs(f"{folder}/photos/__MACOSX/cat")
    with open(f"{folder}/photos/__MACOSX/cat/._0.png", "wb") as file:
        file.write(b"\x00\x05\x16\x07")
    return sorted_folder(paths, word="__MACOSX")
