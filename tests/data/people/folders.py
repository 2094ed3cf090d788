# SPDX-FileCopyrightText: 2026 The Lockstep authors
# SPDX-License-Identifier: MIT
"""Folders of pictures, as people sort and call them."""
from .cases import case
from .pictures import fill, picture, samples_of, save, sorted_folder


@case("halves", "train alone")
def _(folder):
    return sorted_folder(fill(f"{folder}/photos/train"), said="train/", word="train")


@case("halves", "a class that is trained alone")
def _(folder):
    halves = {"train": samples_of(fill(f"{folder}/photos/train")),
              "test": samples_of(fill(f"{folder}/photos/test", ["bee", "cat"], 2))}
    return sorted_folder(halves=halves, said="dog", with_job=False)


@case("halves", "the same picture in both")
def _(folder):
    halves = {half: samples_of(fill(f"{folder}/photos/{half}", count=2)) for half in ("train", "test")}
    return sorted_folder(halves=halves, said="in another half, too", with_job=False)


@case("folders", "one picture under two labels")
def _(folder):
    paths = fill(f"{folder}/photos")
    for name in ("bee", "cat"):
        paths[name][0] = save(f"{folder}/photos/{name}/0.png", picture("the same"))
    return sorted_folder(paths, said="two labels", with_job=False)


NAMES = {"spaces": ["red fox", "grey wolf"], "letters beyond ASCII": ["Käfer", "Ёж", "猫"],
         "numbers": [str(i) for i in range(11)], "points": ["v1.0", "v1.1"], "capitals": ["Cat", "cat"],
         "quotes": ["it's", 'a "b"'], "a formula": ["=1+1", "-x"],
         "braces": ["{0}", "%s"]}
for name, classes in NAMES.items():
    @case("folders", f"names: {name}")
    def _(folder, classes=classes):
        return sorted_folder(fill(f"{folder}/photos", classes))
