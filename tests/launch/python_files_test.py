#!/usr/bin/env python3
# SPDX-FileCopyrightText: 2026 The Lockstep authors
# SPDX-License-Identifier: MIT
"""Arrays of the Python package as files, at their limits, and safetensors."""
import hashlib
import json
import tempfile
import unittest
import unittest.mock
from pathlib import Path

from python_package import bars, np

import lockstep
from lockstep import files


class Files(unittest.TestCase):
    """Arrays at the limits of their files; nothing is written."""

    def test_images_are_within_the_limits(self):
        self.assertEqual(files.as_images(np.zeros((1, 16384, 1), np.uint8), "x").shape, (1, 16384, 1))
        self.assertEqual(files.as_images(np.zeros((2, 1, 3, 4), np.uint8), "x").shape, (2, 3, 4))
        self.assertEqual(files.as_images(np.zeros((2, 4, 3, 1), np.uint8), "x").shape, (2, 3, 1, 4))
        self.assertEqual(files.as_images(np.zeros((2, 5, 3, 5), np.uint8), "x").shape, (2, 3, 5, 5))
        self.assertEqual(files.as_images(np.zeros((1, 16385, 1, 5), np.uint8), "x").shape, (1, 1, 5, 16385))
        for channels in (1, 2, 3, 4):
            self.assertRaisesRegex(lockstep.UsageError, "has its channels last", files.as_images, np.zeros((2, 5, 3, channels), np.uint8), "x")
            self.assertEqual(files.as_images(np.zeros((2, channels, 3, 1), np.uint8), "x").shape[:3], (2, 3, 1))
        with unittest.mock.patch.object(files, "_MOST_BYTES", 24):
            self.assertEqual(files.as_images(np.zeros((2, 3, 4), np.uint8), "x").nbytes, 24)
        for shape, sentence in (((1, 16385, 1), "of 1 to 16384 pixels a side"), ((1, 1, 16385), "of 1 to 16384 pixels a side"),
                                ((2, 0, 3), "there must be an image"), ((200_000, 110, 100), "x: 2200000000 bytes; a file of images holds 2147483647"),
                                ((1, 2, 3, 4, 5), "x: 5 dimensions; images are N x H x W")):
            with self.subTest(sentence), self.assertRaisesRegex(lockstep.UsageError, sentence):
                files.as_images(np.broadcast_to(np.uint8(0), shape), "x")

    def test_features_are_within_the_limits(self):
        self.assertEqual(files.as_features(np.ones((2, 3), np.float32), "x").shape, (2, 3, 1, 1))
        self.assertEqual(files.as_features(np.ones((2, 3, 4, 5), np.float32), "x").shape, (2, 3, 4, 5))
        with unittest.mock.patch.object(files, "_MOST_FEATURES", 1):
            self.assertEqual(files.as_features(np.ones((1, 1), np.float32), "x").shape, (1, 1, 1, 1))
        for shape in ((2,), (0, 3), (1, 2**24 + 1), (1, 2, 2**12, 2**12)):
            with self.subTest(shape), self.assertRaisesRegex(lockstep.UsageError, "x: shape .*, at most 16777216 in a row"):
                files.as_features(np.broadcast_to(np.float32(0), shape), "x")

    def test_labels_are_within_the_limits(self):
        self.assertEqual(files.as_labels([0, 255], 2, "y").tolist(), [0, 255])
        self.assertEqual(files.as_labels([[0], [1]], 2, "y").tolist(), [[0], [1]])
        self.assertEqual(files.as_classes([999_999], 1, "y").tolist(), [999_999])
        for labels, take, most in (([256], files.as_labels, 255), ([1_000_000], files.as_classes, 999_999)):
            self.assertRaisesRegex(lockstep.UsageError, f"classes are numbered from 0 to {most} at most", take, labels, 1, "y")

    def test_arrays_that_make_no_set_are_refused_with_a_fix(self):
        x, y = bars(4, 1)
        three = np.stack([y % 2 == 0, y % 2 == 1, y >= 0], axis=1)
        f = np.random.default_rng(1).normal(1000, 300, (9, 3)).astype(np.float32)
        g, bad = np.arange(9) % 2, f.copy()
        bad[7, 1] = np.nan
        for data, classes, sentence in (
                ((x / 255, y, x, y), [], r"x: float64 images.*x\.astype\(numpy\.uint8\)"),
                ((x, y, x[:, :5], y), [], "x and x_test: images of"),
                ((x[0], y, x, y), [], "x: 2 dimensions"),
                ((x[:0], y[:0], x, y), [], "there must be an image"),
                ((x[..., None].repeat(3, 3), y, x, y), [], r"transpose\(0, 3, 1, 2\)"),
                ((x, y[:3], x, y), [], "y: int64 of shape .3,.; labels are 4 whole numbers"),
                ((x, y, x, y + 255), [], "y_test: labels from 255 to 256"),
                ((x, y / 2, x, y), [], "y: float64"),
                ((x, y), [], "give four"),
                ((x, three * 2, x, three), [], "y: a row for each image holds 1"),
                ((x, three, x, y), [], "they must be of one kind"),
                ((x, three, x, three[:, :2]), [], "they must be of one kind"),
                ((x, three[:3], x, three), [], "y: bool of shape"),
                ((x, three[:, :0], x, three[:, :0]), [], "y: bool of shape"),
                ((bad, g, f, g), [], "x: row 7 has NaN"),
                ((f, g, f[:, :2], g), [], "x and x_test: rows of"),
                ((f, g, f.astype(np.float64), g), [], r"x_test: float64; features.*astype\(numpy.float32\)"),
                ((f[:, :, None], g, f, g), [], "x: shape"),
                ((f, g - 1, f, g), [], "y: labels from -1"),
                ((f, g[:4], f, g), [], "y: int64 of shape"),
                ((x, y, x, y), ["one"], "classes: 1 of 2 names, and labels go up to 1"),
                ((x, y, x, y + 1), ["a", "b"], "classes: 2 of 3 names"),
                ((f, g, f, g + 1), ["a", "b"], "classes: 2 of 3 names"),
                ((x, y, x, y), ["a", " "], "' ' is not a name of one class"),
                ((x, y, x, y), ["a", 7], "7 is not a name of one class"),
                ((x, three, x, three), ["a", "b"], "2 of 3 names"),
                ((f, g, f, g), ["one"], "classes: 1 of 2 names"),
                ((x, three, x, three), ["a", "b", "c", "d"], "classes: 4 names, and rows of labels have 3"),
                ((x, y, x, y), ["a", "a"], "'a' is not a name of one class"),
                ((x, y, x, y), ["a", "\u200b"], "is not a name of one class"),
                ((x, y, x, y), ["a", "\ud83d"], "is not a name of one class"),
                ((x, three, x, three), ["a", "b", "c\nd"], "is not a name of one class")):
            with self.subTest(sentence), self.assertRaisesRegex(lockstep.UsageError, sentence):
                files.write_set(data, classes)

    def test_many_names_are_not_compared_each_with_each(self):
        class Name(str):
            compared = 0
            __hash__ = str.__hash__

            def __eq__(self, other):
                Name.compared += 1
                return str.__eq__(self, other)

        files._check_names([Name(number) for number in range(1000)], 1000)
        self.assertLess(Name.compared, 1000)

    def test_header_of_idx_has_the_sizes(self):
        self.assertEqual(files.idx_head(np.zeros((2, 3, 260), np.uint8)), bytes([0, 0, 8, 3, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 1, 4]))

    def test_index_of_shards_has_sums_and_checksums(self):
        x = np.arange(2 * 6, dtype=np.uint8).reshape(2, 2, 3)
        made = files._label_set_files((x, np.array([[1, 1, 0], [0, 1, 0]]), x[:1], np.array([[0, 0, 0]])), ["a", "b", "c"])
        line, digest, _ = made["shards.index"][0].split(b"\n")
        self.assertEqual(hashlib.sha256(line).hexdigest().encode(), digest)
        head = json.loads(line)
        self.assertEqual([head[name] for name in ("lockstep_shards", "several_labels", "channels", "height", "width", "classes", "class_names",
                                                  "block_bytes", "shard_bytes")], [3, True, 1, 2, 3, 3, ["a", "b", "c"], 262144, 2**30])
        blocks = hashlib.sha256(x.tobytes()).digest()
        self.assertEqual(made["train-blocks.sha256"], (blocks,))
        self.assertEqual(made["train-00000.shard"][0].tobytes(), x.tobytes())
        labels = np.array([2, 0, 1, 1, 1], "<u4").tobytes()
        self.assertEqual(head["train"], {"samples": 2, "labels_sha256": hashlib.sha256(labels).hexdigest(), "label_count": 3, "values": [66],
                                         "blocks_sha256": hashlib.sha256(blocks).hexdigest(), "squares": [sum(n * n for n in range(12))]})
        with unittest.mock.patch.multiple(files, _BLOCK=4, _SHARD=8):
            made = files._label_set_files((x, np.eye(2, dtype=int), x, np.eye(2, dtype=int)), [])
        self.assertEqual((made["train-00000.shard"][0].tobytes(), made["train-00001.shard"][0].tobytes()), (bytes(range(8)), bytes(range(8, 12))))
        self.assertEqual(made["train-blocks.sha256"], (b"".join(hashlib.sha256(bytes(range(at, at + 4))).digest() for at in (0, 4, 8)),))

    def test_shards_of_colour_have_a_sum_for_each_channel(self):
        x, rows = np.arange(24, dtype=np.uint8).reshape(2, 3, 2, 2), np.eye(2, dtype=int)
        made = files._label_set_files((x, rows, x, rows), [])
        self.assertEqual(made["train-00000.shard"][0].tobytes(), x.tobytes())
        head = json.loads(made["shards.index"][0].split(b"\n")[0])
        self.assertEqual((head["channels"], head["train"]["values"], head["train"]["squares"]), (3, [60, 92, 124], [748, 1356, 2220]))

    def test_a_table_has_the_classes_of_its_labels_or_names(self):
        x, y = np.ones((2, 3, 4, 5), np.float32), [0, 1]
        for names, count in (([], 2), (["a", "b", "c"], 3)):
            head = json.loads(files._table_files((x, y, x, y), names)["shards.index"][0].split(b"\n")[0])
            self.assertEqual([head[name] for name in ("lockstep_shards", "sample", "channels", "height", "width", "classes")],
                             [2, "float32", 3, 4, 5, count])

    def test_emoji_and_characters_newer_than_python_are_names(self):
        names, y = ["\U0001f468\u200d\U0001f469", "a\u3000\U000323b0"], [0, 1]
        x, f = np.zeros((2, 3, 4), np.uint8), np.ones((2, 3), np.float32)
        self.assertEqual(files._idx_files((x, y, x, y), names)["classes.txt"][0].decode("utf-8"), "".join(f"{name}\n" for name in names))
        head = json.loads(files._table_files((f, y, f, y), names)["shards.index"][0].split(b"\n")[0])
        self.assertEqual(head["class_names"], names)


class Safetensors(unittest.TestCase):
    def read(self, header, body=b""):
        text = header if isinstance(header, bytes) else json.dumps(header).encode()
        with tempfile.NamedTemporaryFile() as file:
            file.write(len(text).to_bytes(8, "little") + text + body)
            file.flush()
            return files.read_safetensors(Path(file.name))

    def test_tensors_come_in_their_order(self):
        tensors = self.read({"a": {"dtype": "F32", "shape": [], "data_offsets": [8, 12]}, "__metadata__": {"format": "pt"},
                             "b": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}}, np.float32([2, 3, 1]).tobytes())
        self.assertEqual({name: array.tolist() for name, array in tensors.items()}, {"a": 1, "b": [2, 3]})
        self.assertEqual(list(tensors), ["b", "a"])
        self.assertEqual(self.read({}), {})
        self.assertEqual(self.read({"none": {"dtype": "F32", "shape": [0], "data_offsets": [4, 4]}}, bytes(4))["none"].tolist(), [])

    def test_what_is_none_is_refused(self):
        for header in (b"{", b"[]", {"a": {"dtype": "F32", "shape": [2], "data_offsets": [0, 4]}},
                       {"a": {"dtype": "F32", "shape": [1], "data_offsets": [4, 8]}}, {"a": {"dtype": "C64", "shape": [], "data_offsets": [0, 4]}},
                       {"a": {"dtype": "F32", "shape": [-1, -1], "data_offsets": [0, 4]}}, {"a": 1},
                       {"a": {"dtype": "F32", "shape": [1] * 100, "data_offsets": [0, 4]}},
                       {"a": {"dtype": "F32", "shape": [0, 2**70], "data_offsets": [0, 0]}},
                       {"a": {"dtype": "F32", "shape": [True], "data_offsets": [0, 4]}}):
            with self.subTest(header):
                self.assertRaises(lockstep.DataError, self.read, header, bytes(4))
        self.assertRaises(lockstep.DataError, self.read, b"[" * 100_000)
        with tempfile.NamedTemporaryFile() as file:
            file.write(b"\xff" * 64)
            file.flush()
            self.assertRaises(lockstep.DataError, files.read_safetensors, Path(file.name))
            file.seek(0)
            file.write((3).to_bytes(8, "little") + b"{}")
            file.truncate()
            self.assertRaisesRegex(lockstep.DataError, "its header is longer than the file", files.read_safetensors, Path(file.name))
            file.seek(0)
            file.write((100_000_001).to_bytes(8, "little"))
            file.truncate(100_000_009)
            self.assertRaisesRegex(lockstep.DataError, "its header is longer than the file", files.read_safetensors, Path(file.name))


if __name__ == "__main__":
    unittest.main()
