# SPDX-FileCopyrightText: 2026 The Lockstep authors
# SPDX-License-Identifier: MIT
"""A run and another set: classes and columns belong together by name, and no score is printed that is not true.

The runs learn samples that are told apart by sight, so that what is scored right by name gets 100 %.
"""
import json
import os
import shutil

import numpy
import pandas
from PIL import Image

from .cases import CASES, Case, Wrong, lockstep, outcome_of, require
from .files import idx

LEARN = "train: {epochs: 40, optimizer: {lr: 0.05}}\nparallel: {grain: 16, device: cpu}\nrun: {dir: run}\nmodel: linear\n"
HUES = {"cat": 0, "dog": 1, "eagle": 2, "fox": 3}


def order(name):
    """A function of the folder → "read" or "refused"."""
    def register(check):
        CASES.append(Case("orders", name, check))
    return register


def image_of(animal, i):
    """A bright quarter says which animal it is."""
    pixels = numpy.full((8, 8), 20 + 2 * i, "u1")
    row, column = divmod(HUES[animal], 2)
    pixels[4 * row:4 * row + 4, 4 * column:4 * column + 4] = 220
    return pixels


def folders(root, animals, counts=(5, 5)):
    for half, count in zip(("train", "test"), counts):
        for animal in animals:
            os.makedirs(f"{root}/{half}/{animal}")
            for i in range(count):
                Image.fromarray(image_of(animal, i)).save(f"{root}/{half}/{animal}/{i}.png")


def numbered(root, animals, classes=True):
    """IDX files whose labels are places in `animals`."""
    os.makedirs(root)
    for half, count in (("train", 5), ("t10k", 5)):
        pairs = [(label, image_of(animal, i)) for i in range(count) for label, animal in enumerate(animals)]
        for kind, array in (("images-idx3", [image for _, image in pairs]), ("labels-idx1", [label for label, _ in pairs])):
            with open(f"{root}/{half}-{kind}-ubyte", "wb") as file:
                file.write(idx(numpy.array(array)))
    if classes:
        write_names(root, animals)


def write_names(root, animals):
    with open(f"{root}/classes.txt", "w", encoding="utf-8") as file:
        file.write("\n".join(animals) + "\n")


def frame_of(kinds, columns=("up", "left", "size"), count=10):
    random = numpy.random.default_rng(5)
    places = {"ant": (-3, 0), "bee": (3, 0), "wasp": (0, 4)}
    frame = pandas.DataFrame({"up": [], "left": [], "size": [], "label": []})
    for i in range(count):
        for kind in kinds:
            up, left = numpy.array(places[kind]) + random.normal(0, 0.2, 2)
            frame.loc[len(frame)] = [up, left, random.normal(), kind]
    return frame[[*columns, "label"]]


def convert(folder, frame, name):
    frame.to_csv(f"{folder}/{name}.csv", index=False)
    done = lockstep(folder, "convert", f"{name}.csv", name)
    require(done.returncode == 0, f"convert: {done.stderr}")


def learn(folder, kind, root):
    with open(f"{folder}/job.yaml", "w", encoding="utf-8") as file:
        file.write(LEARN + f"data: {{set: {kind}, root: {root}, global_batch: 10}}\n")
    done = lockstep(folder, "train", "job.yaml")
    require(done.returncode == 0 and b"accuracy 100.00 % of" in done.stdout, f"did not learn: {done.stdout + done.stderr}")


def judge(folder, word, samples, *arguments, right=None):
    """An evaluation of so many samples that gets all of them right, or `right`; or a sentence with the word."""
    right = samples if right is None else right
    done = lockstep(folder, "eval", "run", *arguments, "--classes", "--json")
    if outcome_of(done, word) == "refused":
        return "refused"
    answer = json.loads(done.stdout)
    require((answer["correct"], answer["samples"]) == (right, samples),
            f"{answer['correct']} of {answer['samples']} are right, not {right} of {samples}: {answer['confusion']}")
    return "read"


@order("the same classes elsewhere")
def _(folder):
    folders(f"{folder}/a", ["cat", "dog"])
    folders(f"{folder}/b", ["cat", "dog"], (2, 4))
    learn(folder, "pictures", "a")
    return judge(folder, "", 8, "--data", "b")


for name, other, right in (("another class behind", ["cat", "dog", "eagle"], 10),
                           ("another class in front", ["dog", "eagle"], 5), ("no class in common", ["eagle", "fox"], 0)):
    @order(f"pictures: {name}")
    def _(folder, other=other, right=right):
        folders(f"{folder}/a", ["cat", "dog"])
        folders(f"{folder}/b", other)
        learn(folder, "pictures", "a")
        return judge(folder, "eagle", right, "--data", "b")


@order("pictures: two of three classes")
def _(folder):
    folders(f"{folder}/a", ["cat", "dog", "eagle"])
    folders(f"{folder}/b", ["dog", "eagle"])
    learn(folder, "pictures", "a")
    return judge(folder, "cat", 10, "--data", "b")


@order("IDX: classes.txt in another order, with its labels")
def _(folder):
    numbered(f"{folder}/a", ["cat", "dog", "eagle"])
    numbered(f"{folder}/b", ["eagle", "cat", "dog"])
    learn(folder, "idx", "a")
    return judge(folder, "class", 15, "--data", "b")


@order("IDX: no names here, names there")
def _(folder):
    numbered(f"{folder}/a", ["cat", "dog"], classes=False)
    numbered(f"{folder}/b", ["cat", "dog"])
    learn(folder, "idx", "a")
    return judge(folder, "class", 10, "--data", "b")


def renamed(folder):
    """A run whose set has turned names by now."""
    numbered(f"{folder}/a", ["cat", "dog"])
    learn(folder, "idx", "a")
    write_names(f"{folder}/a", ["dog", "cat"])


@order("classes.txt is turned round, and the run goes on")
def _(folder):
    renamed(folder)
    done = lockstep(folder, "train", "job.yaml", "train.epochs=41")
    if outcome_of(done, "class") == "read":
        raise Wrong(f"goes on: {done.stdout.decode()}")
    return "refused"


@order("classes.txt is turned round, and the run is proved")
def _(folder):
    renamed(folder)
    done = lockstep(folder, "prove", "run")
    require(done.returncode != 0 and b"class" in done.stdout + done.stderr, f"proved: {done.stdout + done.stderr}")
    return "refused"


@order("classes.txt is turned round, and the run is evaluated")
def _(folder):
    renamed(folder)
    return judge(folder, "class", 10, right=0)


@order("classes.txt is turned round, and a sample is predicted")
def _(folder):
    numbered(f"{folder}/a", ["cat", "dog"])
    learn(folder, "idx", "a")
    shutil.copytree(f"{folder}/a", f"{folder}/b")
    Image.fromarray(image_of("dog", 2)).save(f"{folder}/dog.png")
    write_names(f"{folder}/a", ["dog", "cat"])
    done = lockstep(folder, "predict", "run", "dog.png", "--json")
    if outcome_of(done, "class") == "refused":
        return "refused"
    require(json.loads(done.stdout)["class"] == "dog", f"a dog is no dog: {done.stdout}")
    return "read"


@order("weights of a run with classes in another order")
def _(folder):
    numbered(f"{folder}/a", ["cat", "dog"])
    numbered(f"{folder}/b", ["dog", "cat"])
    learn(folder, "idx", "a")
    done = lockstep(folder, "train", "job.yaml", "data.root=b", "run.dir=further", "train.initial_weights=run",
                    "train.max_steps=1", "train.optimizer.lr=1e-9")
    if outcome_of(done, "class") == "refused":
        return "refused"
    require(b"accuracy 100.00 % of 10" in done.stdout, f"classes are mixed up: {done.stdout.decode()}")
    return "read"


@order("table: columns in another order")
def _(folder):
    convert(folder, frame_of(["ant", "bee", "wasp"]), "a")
    convert(folder, frame_of(["ant", "bee", "wasp"], ("size", "left", "up")), "b")
    learn(folder, "table", "a")
    return judge(folder, "column", 6, "--data", "b")


@order("table: a column of another name")
def _(folder):
    convert(folder, frame_of(["ant", "bee", "wasp"]), "a")
    convert(folder, frame_of(["ant", "bee", "wasp"]).rename(columns={"size": "weight"}), "b")
    learn(folder, "table", "a")
    if judge(folder, "weight", 6, "--data", "b") == "read":
        raise Wrong("weights are taken for sizes")
    return "refused"


@order("table: a class is missing")
def _(folder):
    convert(folder, frame_of(["ant", "bee", "wasp"]), "a")
    convert(folder, frame_of(["bee", "wasp"]), "b")
    learn(folder, "table", "a")
    return judge(folder, "ant", 4, "--data", "b")


@order("table: rows to predict with columns in another order")
def _(folder):
    convert(folder, frame_of(["ant", "bee", "wasp"]), "a")
    learn(folder, "table", "a")
    rows = frame_of(["wasp", "ant", "bee"], ("left", "size", "up"))
    rows.to_csv(f"{folder}/rows.csv", index=False)
    done = lockstep(folder, "predict", "run", "rows.csv", "--drop", "label", "--json")
    if outcome_of(done, "column") == "refused":
        return "refused"
    answers = [json.loads(line)["class"] for line in done.stdout.splitlines()]
    require(answers == list(rows["label"]), f"rows are taken for {answers[:6]}, and are {list(rows['label'])[:6]}")
    return "read"
