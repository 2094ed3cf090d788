# SPDX-FileCopyrightText: 2026 The Lockstep authors
# SPDX-License-Identifier: MIT
"""Tables in text, as pandas, numpy, spreadsheets and archives of data sets write them."""
import csv
import gzip
import io

import numpy
import pandas

from .cases import Want, case, random_of

FEATURES = ["width", "height", "depth"]
KINDS = ["bee", "ant", "wasp"]


def flowers(name, label="label", kinds=KINDS, at=3, rows=5):
    """A frame whose label stands in column `at`; `rows` of each kind, in turns."""
    random = random_of(name)
    frame = pandas.DataFrame({feature: numpy.round(random.normal(size=rows * len(kinds)), 3) for feature in FEATURES})
    frame.insert(at, label, [kinds[i % len(kinds)] for i in range(len(frame))])
    return frame


def samples_of(frame, label="label", classes=str):
    features = frame.drop(columns=[label]).to_numpy("f8")
    return [(classes(kind), row) for kind, row in zip(frame[label], features)]


def table(folder, frame, file="table.csv", options=(), label="label", classes=str, order=None, encoding="utf-8",
          want=None, **csv_options):
    text = frame.to_csv(**{"index": False, **csv_options})
    content = text.encode(encoding)
    with (gzip.open if file.endswith(".gz") else open)(f"{folder}/{file}", "wb") as out:
        out.write(content)
    want = want or {"samples": samples_of(frame, label, classes)}
    return Want(convert=[file, *options], classes=order, **want)


def text_table(folder, text, file="table.csv", options=(), **want):
    with open(f"{folder}/{file}", "wb") as out:
        out.write(text if isinstance(text, bytes) else text.encode())
    return Want(convert=[file, *options], **want)


REFUSED = {"samples": None}

# Position and name of the label.
for label in ("label", "target", "class", "y", "species"):
    for place, at in (("first", 0), ("last", 3)):
        @case("csv", f"pandas, {label} {place}")
        def _(folder, label=label, at=at):
            frame = flowers(label + str(at), label, at=at)
            return table(folder, frame, label=label, want={"samples": samples_of(frame, label), "said": label})


@case("csv", "Kaggle's form of MNIST")
def _(folder):
    random = random_of("kaggle")
    frame = pandas.DataFrame(random.integers(0, 256, (20, 16)), columns=[f"pixel{i}" for i in range(16)])
    frame.insert(0, "label", [i % 4 for i in range(20)])
    return table(folder, frame, want={"samples": samples_of(frame), "said": "label"})


# Kinds of labels.
LABELS = {
    "whole numbers": ([0, 1, 2], str, ["0", "1", "2"]),
    "whole numbers from 1": ([1, 2, 3], str, None),
    "10 and 9": ([10, 9], str, ["9", "10"]),
    "minus one": ([-1, 1], str, ["-1", "1"]),
    "floats 1.0": ([0.0, 1.0, 2.0], lambda x: str(int(x)), None),
    "True and False": ([True, False], str, ["False", "True"]),
    "with spaces": (["red fox", "grey wolf"], str, None),
    "beyond ASCII": (["Käfer", "Ёж", "猫"], str, None),
    "with commas and quotes": (["a, b", 'say "c"'], str, None),
    "capitals beside small letters": (["cat", "Cat"], str, ["Cat", "cat"]),
}
for name, (kinds, classes, order) in LABELS.items():
    @case("csv", f"labels: {name}")
    def _(folder, name=name, kinds=kinds, classes=classes, order=order):
        return table(folder, flowers(name, kinds=kinds), classes=classes, order=order)


@case("csv", "labels: 1 and 1.0 are one")
def _(folder):
    rows = [(i % 2, i * 0.5) for i in range(20)]
    text = "label,a\n" + "".join(f"{label}{'.0' if i % 3 == 0 else ''},{a}\n" for i, (label, a) in enumerate(rows))
    return text_table(folder, text, samples=[(str(label), [a]) for label, a in rows])


# How it is written.
WRITTEN = {
    "semicolons": ("table.csv", {"sep": ";"}, ["--separator", ";"], ""),
    "semicolons, not told": ("table.csv", {"sep": ";"}, [], "separator"),
    "tabs": ("table.tsv", {"sep": "\t"}, [], ""),
    "tabs in .txt": ("table.txt", {"sep": "\t"}, ["--separator", "\t"], ""),
    "tabs in .csv, not told": ("table.csv", {"sep": "\t"}, [], "separator"),
    "bars": ("table.txt", {"sep": "|"}, ["--separator", "|"], ""),
    "spaces": ("table.data", {"sep": " "}, ["--separator", " "], ""),
    "CRLF": ("table.csv", {"lineterminator": "\r\n"}, [], ""),
    "CR": ("table.csv", {"lineterminator": "\r"}, [], "line"),
    "mark of byte order": ("table.csv", {"encoding": "utf-8-sig"}, [], ""),
    "UTF-16": ("table.csv", {"encoding": "utf-16"}, [], "table.csv"),
    "all quoted": ("table.csv", {"quoting": csv.QUOTE_ALL}, [], ""),
    "text quoted": ("table.csv", {"quoting": csv.QUOTE_NONNUMERIC}, [], ""),
    "compressed": ("table.csv.gz", {}, [], ""),
    "spaces in its name": ("my table (1).csv", {}, [], ""),
    "name beyond ASCII": ("täble 猫.csv", {}, [], ""),
    "numbers like 1.5e+00": ("table.csv", {"float_format": "%.6e"}, [], ""),
    "called .parquet": ("table.parquet", {}, [], "table.parquet"),
}
for name, (file, csv_options, options, word) in WRITTEN.items():
    @case("csv", f"written: {name}")
    def _(folder, name=name, file=file, csv_options=csv_options, options=options, word=word):
        frame = flowers(name)
        return table(folder, frame, file, options, want={"samples": samples_of(frame), "word": word}, **csv_options)


@case("csv", "written: decimal commas")
def _(folder):
    return table(folder, flowers("decimal"), options=["--separator", ";"], sep=";", decimal=",",
                 want={**REFUSED, "word": "width", "details": "column"})


@case("csv", "written: without a header, told")
def _(folder):
    return table(folder, flowers("headless"), "iris.data", ["--label", "4"], header=False)


@case("csv", "written: without a header, not told")
def _(folder):
    return table(folder, flowers("headless"), "iris.data", header=False, want={**REFUSED, "word": "--label"})


@case("csv", "written: label first and whole, without a header, told")
def _(folder):
    return table(folder, flowers("wine", kinds=[1, 2, 3], at=0), "wine.data", ["--label", "1"], header=False)


@case("csv", "written: numpy.savetxt with a header")
def _(folder):
    frame = flowers("savetxt", kinds=[0, 1])
    text = io.StringIO()
    numpy.savetxt(text, frame.to_numpy("f8"), delimiter=",", header=",".join(frame.columns))
    return text_table(folder, text.getvalue(), samples=samples_of(frame))


# pandas' index.
@case("csv", "pandas with its index")
def _(folder):
    frame = flowers("index")
    with_index = frame.reset_index()
    return table(folder, frame, index=True, want={"samples": samples_of(with_index), "said": "index"})


# Files that are no tables.
NO_TABLES = {
    "a web page": ("table.csv", "<!DOCTYPE html>\n<html><body>Not found</body></html>\n", "table.csv"),
    "a spreadsheet": ("table.csv", b"PK\x03\x04\x14\x00\x06\x00\x08\x00\x00\x00!\x00", "table.csv"),
    "what is no gzip": ("table.csv.gz", "label,a\n1,2\n", "gz"),
    "JSON": ("table.json", '[{"a": 1}]', "table.json"),
}
for name, (file, content, word) in NO_TABLES.items():
    @case("csv", f"holds {name}")
    def _(folder, file=file, content=content, word=word):
        return text_table(folder, content, file, word=word)


@case("csv", "standard input")
def _(folder):
    text = flowers("stdin").to_csv(index=False).encode()
    return Want(convert=["/dev/stdin"], stdin=text, word="pipe")


@case("csv", "a folder of tables")
def _(folder):
    text_table(folder, flowers("in a folder").to_csv(index=False))
    return Want(convert=["."], word="folder")
