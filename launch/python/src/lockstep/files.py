# SPDX-FileCopyrightText: 2026 The Lockstep authors
# SPDX-License-Identifier: MIT
"""Arrays as files: images as IDX, with several labels each and features as shards (docs/shard-format.md); safetensors are read."""
from __future__ import annotations

import hashlib
import json
import os
import stat
import struct
import tempfile
import unicodedata
from pathlib import Path
from typing import IO, Any, Dict, Iterable, Iterator, List, Optional, Sequence, Set, Tuple, Union

import numpy as np
import numpy.typing as npt

from .program import DataError, IoError, UsageError

Array = npt.NDArray[Any]
Files = Dict[str, Tuple[Union[bytes, Array], ...]]  # contents by name: parts, one after another

_MOST_BYTES = 2**31 - 1  # per IDX file
_MOST_PIXELS = 16384  # per side
_MOST_FEATURES = 2**24  # per row
_MOST_CLASSES = 1_000_000  # per table
_BLOCK, _SHARD = 2**18, 2**30  # bytes of shards that have a SHA-256, and of their files
_MOST_HEADER = 100_000_000  # bytes; the safetensors format sets this limit


def as_images(array: Any, name: str) -> Array:
    """N x H x W or N x C x H x W bytes as an IDX file keeps them: N x H x W or N x H x W x C.

    Raises:
        UsageError: IDX cannot hold them; says what to do.
    """
    images = np.asarray(array)
    if images.dtype != np.uint8:
        raise UsageError(f"{name}: {images.dtype} images; they are kept as bytes: bring them to 0..255 and give {name}.astype(numpy.uint8); features are {name}.astype(numpy.float32)")
    if images.ndim == 4 and images.shape[1] not in (1, 2, 3, 4) and images.shape[3] in (1, 2, 3, 4):
        raise UsageError(f"{name}: shape {images.shape} has its channels last; give {name}.transpose(0, 3, 1, 2)")
    if images.ndim == 4:
        images = images[:, 0] if images.shape[1] == 1 else images.transpose(0, 2, 3, 1)
    if images.ndim != 3 and np.asarray(array).ndim != 4:
        raise UsageError(f"{name}: {images.ndim} dimensions; images are N x H x W, or N x C x H x W where they have channels")
    if min(images.shape) < 1 or max(images.shape[1:3]) > _MOST_PIXELS:
        raise UsageError(f"{name}: shape {np.asarray(array).shape}; there must be an image, of 1 to {_MOST_PIXELS} pixels a side")
    if images.nbytes > _MOST_BYTES:
        raise UsageError(f"{name}: {images.nbytes} bytes; a file of images holds {_MOST_BYTES}: give fewer or smaller ones")
    return np.ascontiguousarray(images)


def is_features(array: Any) -> bool:
    """True if these are rows of numbers rather than images."""
    return bool(np.asarray(array).dtype == np.float32)


def as_features(array: Any, name: str) -> Array:
    """N x F, or N x C x H x W, fp32 numbers as a table keeps them: N x C x H x W.

    Raises:
        UsageError: they are no such array, or not all finite.
    """
    rows = np.asarray(array)
    if rows.ndim not in (2, 4) or min(rows.shape) < 1 or rows[0].size > _MOST_FEATURES:
        raise UsageError(f"{name}: shape {rows.shape}; features are N x F, or N x C x H x W, at most {_MOST_FEATURES} in a row")
    if rows.dtype != np.float32:
        raise UsageError(f"{name}: {rows.dtype}; features are numpy.float32: give {name}.astype(numpy.float32)")
    if not np.isfinite(rows).all():
        row = int(np.argwhere(~np.isfinite(rows))[0][0])
        raise UsageError(f"{name}: row {row} has NaN or infinity; replace it, or leave the row out")
    return np.ascontiguousarray(rows.reshape(rows.shape + (1, 1)) if rows.ndim == 2 else rows, dtype="<f4")


def as_classes(array: Any, count: int, name: str) -> Array:
    """Labels of rows as 32 bits. Raises UsageError where they are no whole numbers, or too large."""
    return _class_numbers(np.asarray(array), name, count, "one for each row", _MOST_CLASSES - 1).astype("<u4")


def _class_numbers(labels: Array, name: str, count: int, each: str, most: int) -> Array:
    if labels.dtype.kind not in "iu" or labels.shape != (count,):
        raise UsageError(f"{name}: {labels.dtype} of shape {labels.shape}; labels are {count} whole numbers, {each}")
    if labels.min() < 0 or labels.max() > most:
        raise UsageError(f"{name}: labels from {labels.min()} to {labels.max()}; classes are numbered from 0 to {most} at most")
    return labels


def as_labels(array: Any, count: int, name: str) -> Array:
    """Labels as bytes: whole numbers, or a row of zeros and ones for each image. Raises UsageError where they are not."""
    labels = np.asarray(array)
    if labels.ndim == 2 and len(labels) == count and labels.shape[1] > 0:
        if not np.isin(labels, (0, 1)).all():
            raise UsageError(f"{name}: a row for each image holds 1 for each label that it has, and 0 for others; no other numbers")
        return labels.astype(np.uint8)
    return _class_numbers(labels, name, count, "one for each image, or as many rows of zeros and ones", 255).astype(np.uint8)


def idx_head(array: Array) -> bytes:
    """Header of these bytes in an IDX file."""
    return struct.pack(f">BBBB{array.ndim}I", 0, 0, 8, array.ndim, *array.shape)


def write_set(data: Sequence[Any], classes: Optional[Sequence[str]] = None) -> Tuple[str, Path]:
    """A data set made of (x, y, x_test, y_test): the value of `data.set`, idx, shards or table, and its folder.

    It lies in `~/.cache/lockstep/arrays` under the SHA-256 of its bytes, since runs look for their data again.
    The same arrays are not written twice.

    Raises:
        UsageError: what the files cannot hold. IoError: the folder cannot be written.
    """
    if len(data) != 4:
        raise UsageError(f"data: {len(data)} arrays; give four: (x, y, x_test, y_test)")
    names = list(classes) if classes is not None else []
    if is_features(data[0]):
        return "table", _keep(_table_files(data, names))
    if np.ndim(data[1]) == 2:
        return "shards", _keep(_label_set_files(data, names))
    return "idx", _keep(_idx_files(data, names))


def _images_and_labels(data: Sequence[Any]) -> Tuple[Array, Array, Array, Array]:
    train, test = as_images(data[0], "x"), as_images(data[2], "x_test")
    if train.shape[1:] != test.shape[1:]:
        raise UsageError(f"x and x_test: images of {train.shape[1:]} and {test.shape[1:]}; they must have one size")
    y, y_test = as_labels(data[1], len(train), "y"), as_labels(data[3], len(test), "y_test")
    if y.shape[1:] != y_test.shape[1:]:
        raise UsageError(f"y and y_test: labels of shapes {y.shape} and {y_test.shape}; they must be of one kind")
    return train, y, test, y_test


def _idx_files(data: Sequence[Any], classes: List[str]) -> Files:
    train, y, test, y_test = _images_and_labels(data)
    files: Files = {}
    for half, images, labels in (("train", train, y),
                                 ("t10k", test, y_test)):
        files[f"{half}-images-idx{images.ndim}-ubyte"] = (idx_head(images), images)
        files[f"{half}-labels-idx{labels.ndim}-ubyte"] = (idx_head(labels), labels)
    if classes:
        _check_names(classes, max(int(y.max()), int(y_test.max())) + 1)
        files["classes.txt"] = ("".join(f"{name}\n" for name in classes).encode(),)
    return files


def _check_names(classes: List[str], count: int) -> None:
    """Raises UsageError where they are no names of so many classes; none at all are in order."""
    if classes and len(classes) < count:
        raise UsageError(f"classes: {len(classes)} of {count} names, and labels go up to {count - 1}; name each class")
    seen: Set[str] = set()
    for name in classes:
        if not isinstance(name, str) or not all(map(_is_text, name)) or not name.strip() or name in seen:
            raise UsageError(f"classes: {name!r} is not a name of one class: each is a text of its own, of one line")
        seen.add(name)


def _is_text(character: str) -> bool:
    """As the program has it: emoji have joiners, and a character may be newer than this Python."""
    return character in "\u200c\u200d" or unicodedata.category(character) not in ("Cc", "Cf", "Cs", "Zl", "Zp")


def _label_set_files(data: Sequence[Any], classes: List[str]) -> Files:
    train, y, test, y_test = _images_and_labels(data)
    _check_names(classes, y.shape[1])
    if len(classes) > y.shape[1]:
        raise UsageError(f"classes: {len(classes)} names, and rows of labels have {y.shape[1]}; name each class")
    halves = []
    for half, images, rows in (("train", train, y), ("test", test, y_test)):
        pixels = np.ascontiguousarray(images[:, None] if images.ndim == 3 else images.transpose(0, 3, 1, 2))
        labels = [[len(found), *found] for found in (np.flatnonzero(row) for row in rows)]
        halves.append((half, pixels, np.concatenate(labels).astype("<u4"),
                       {"label_count": int(rows.sum()), "values": pixels.sum((0, 2, 3), np.uint64).tolist(),
                        "squares": np.square(pixels, dtype=np.uint16).sum((0, 2, 3), np.uint64).tolist()}))
    return _shard_files({"lockstep_shards": 3, "several_labels": True, "channels": pixels.shape[1], "height": pixels.shape[2],
                         "width": pixels.shape[3], "classes": y.shape[1], "class_names": classes}, halves)


def _table_files(data: Sequence[Any], classes: List[str]) -> Files:
    train, test = as_features(data[0], "x"), as_features(data[2], "x_test")
    if train.shape[1:] != test.shape[1:]:
        raise UsageError(f"x and x_test: rows of {train.shape[1:]} and {test.shape[1:]}; they must be alike")
    y, y_test = as_classes(data[1], len(train), "y"), as_classes(data[3], len(test), "y_test")
    count = max(int(y.max()), int(y_test.max())) + 1
    _check_names(classes, count)
    return _shard_files({"lockstep_shards": 2, "sample": "float32", "channels": train.shape[1], "height": train.shape[2],
                         "width": train.shape[3], "classes": len(classes) if classes else count,
                         "class_names": classes}, (("train", train, y, {}), ("test", test, y_test, {})))


def _shard_files(head: Dict[str, Any], halves: Iterable[Tuple[str, Array, Array, Dict[str, Any]]]) -> Files:
    """As docs/shard-format.md says; a half is its name, samples, labels, and more entries of the index."""
    files: Files = {}
    head.update(block_bytes=_BLOCK, shard_bytes=_SHARD)
    for half, samples, labels, more in halves:
        numbers = samples.ravel().view(np.uint8)
        blocks = b"".join(hashlib.sha256(numbers[at:at + _BLOCK]).digest() for at in range(0, numbers.size, _BLOCK))
        for at in range(0, numbers.size, _SHARD):
            files[f"{half}-{at // _SHARD:05}.shard"] = (numbers[at:at + _SHARD],)
        files[f"{half}-labels.u32"] = (labels,)
        files[f"{half}-blocks.sha256"] = (blocks,)
        head[half] = {"samples": len(samples), "labels_sha256": hashlib.sha256(labels).hexdigest(),
                      "blocks_sha256": hashlib.sha256(blocks).hexdigest(), **more}
    line = json.dumps(head)
    files["shards.index"] = (f"{line}\n{hashlib.sha256(line.encode()).hexdigest()}\n".encode(),)
    return files


def _keep(files: Files) -> Path:
    digest = hashlib.sha256()
    for name, parts in files.items():
        digest.update(name.encode())
        for part in parts:
            digest.update(part)
    cache = Path(os.environ.get("XDG_CACHE_HOME", ""))
    if not cache.is_absolute():  # the program ignores such a one
        cache = Path.home() / ".cache"
    folder = cache / "lockstep" / "arrays" / digest.hexdigest()
    missing = [name for name, parts in files.items() if not _is_whole(folder / name, parts)]
    if missing:
        _write_files(folder, {name: files[name] for name in missing})
    return folder


def _is_whole(file: Path, parts: Sequence[Union[bytes, Array]]) -> bool:
    """By its size: caches are cleaned of some of their files, and power failures cut others off."""
    size = sum(len(part) if isinstance(part, bytes) else part.nbytes for part in parts)
    return os.path.isfile(file) and os.path.getsize(file) == size


def _write_files(folder: Path, files: Files) -> None:
    """Elsewhere first: another process may want the same set, or this one may be ended."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder.parent, prefix=".tmp-") as made:
            for name, parts in files.items():
                with open(Path(made, name), "wb") as file:
                    file.writelines(parts)
                os.replace(Path(made, name), folder / name)
    except OSError as error:
        raise IoError(f"{folder}: {error.strerror}; the arrays cannot be kept there: set XDG_CACHE_HOME") from error


# Files of the program. Safetensors: the length of a header, the header in JSON, the tensors' bytes.

_DTYPES = {"F64": "<f8", "F32": "<f4", "F16": "<f2", "I64": "<i8", "I32": "<i4", "I16": "<i2", "I8": "i1", "U8": "u1", "BOOL": "?"}


def open_file(path: Path) -> IO[bytes]:
    """For reading. A FIFO in the place of a file is refused and not waited for.

    Raises:
        DataError: it is not a regular file.
    """
    file = open(path, "rb", opener=lambda name, flags: os.open(name, flags | os.O_NONBLOCK))
    if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
        file.close()
        raise DataError(f"{path}: is not a regular file")
    return file


def events_in(lines: Iterable[bytes]) -> Iterator[Dict[str, Any]]:
    """The events of lines of `metrics.jsonl`; damaged ones are left out, which `lockstep runs` counts."""
    for line in lines:
        try:
            event = json.loads(line)
        except (ValueError, RecursionError):
            continue
        if isinstance(event, dict):
            yield event


def read_safetensors(path: Path) -> Dict[str, Array]:
    """The tensors of a safetensors file, in the order in which they lie in it.

    Raises:
        DataError: it is not what the format says. Nothing is allocated before sizes are checked.
    """
    size = path.stat().st_size
    with open_file(path) as file:
        start = file.read(8)
        length = struct.unpack("<Q", start)[0] if len(start) == 8 else size
        if length > min(size - 8, _MOST_HEADER):
            raise DataError(f"{path}: no safetensors file: its header is longer than the file")
        header, body = file.read(length), file.read()
    tensors = {}
    try:
        entries = {name: _entry(value, len(body)) for name, value in json.loads(header).items() if name != "__metadata__"}
        for name, (dtype, shape, begin, end) in sorted(entries.items(), key=lambda entry: entry[1][2]):
            tensors[name] = np.frombuffer(body[begin:end], dtype=dtype).reshape(shape).copy()
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError) as error:
        raise DataError(f"{path}: no safetensors file: {error}") from None
    return tensors


def _entry(value: Any, size: int) -> Tuple[np.dtype[Any], Tuple[int, ...], int, int]:
    dtype = np.dtype(_DTYPES[value["dtype"]])
    shape, (begin, end) = tuple(value["shape"]), value["data_offsets"]
    if not all(isinstance(number, int) and number >= 0 for number in (*shape, begin, end)):
        raise ValueError("a size is not a whole number")
    count = 1
    for side in shape:
        count *= side
    if not begin <= end <= size or end - begin != count * dtype.itemsize:
        raise ValueError("a tensor's bytes and its shape disagree")
    return dtype, shape, begin, end
