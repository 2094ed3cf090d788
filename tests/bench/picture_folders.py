#!/usr/bin/env python3
# SPDX-FileCopyrightText: 2026 The Lockstep authors
# SPDX-License-Identifier: MIT
"""Writes pictures of a set like MNIST into folders, one for each class, as pictures of one's own lie there.

DIRECTORY gets train/CLASS/NUMBER.pgm, the first pictures of each class of the training set, and test/CLASS/NUMBER.pgm
of the test set. `lockstep convert` makes a set of them; shipped_jobs trains launch/jobs/fine-tune.yaml on it.

  tests/bench/picture_folders.py SET DIRECTORY   SET holds the four files, plain or .gz; --help says more
"""
import argparse
import gzip
import os


def read(path, header):
    opener = open if os.path.exists(path) else gzip.open
    with opener(path if opener is open else path + ".gz", "rb") as file:
        return file.read()[header:]


def write(source, part, target, count):
    pixels, labels = read(f"{source}/{part}-images-idx3-ubyte", 16), read(f"{source}/{part}-labels-idx1-ubyte", 8)
    written = {}
    for i, label in enumerate(labels):
        number = written.get(label, 0)
        if number == count:
            continue
        written[label] = number + 1
        os.makedirs(f"{target}/{label}", exist_ok=True)
        with open(f"{target}/{label}/{number:03}.pgm", "wb") as picture:
            picture.write(b"P5 28 28 255\n" + pixels[784 * i : 784 * (i + 1)])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("set", help="holds the four files of a set of 28 x 28, plain or .gz")
    parser.add_argument("directory")
    parser.add_argument("--train", type=int, default=10, help="pictures of each class to train on (10)")
    parser.add_argument("--test", type=int, default=100, help="and to test with (100)")
    arguments = parser.parse_args()
    write(arguments.set, "train", f"{arguments.directory}/train", arguments.train)
    write(arguments.set, "t10k", f"{arguments.directory}/test", arguments.test)


main()
