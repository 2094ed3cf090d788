# SPDX-FileCopyrightText: 2026 The Lockstep authors
# SPDX-License-Identifier: MIT
"""Pictures as Pillow and cameras write them."""
import os
import struct

import numpy
from PIL import Image, ImageOps, PngImagePlugin

from .cases import Want, case, random_of

ANIMALS = ["bee", "cat", "dog"]


def picture(name, size=(8, 6), mode="RGB"):
    """Smooth and no two alike, so that lossy formats keep it."""
    random = random_of(name)
    corners = random.integers(0, 256, (2, 2, 3), dtype=numpy.uint8)
    return Image.fromarray(corners).resize(size, Image.BILINEAR).convert(mode)


def shown(path, mode="RGB"):
    """Pixels as Pillow shows them, channel by channel."""
    with Image.open(path) as opened:
        turned = ImageOps.exif_transpose(opened)
        pixels = numpy.asarray(turned.convert(mode), "f8")
    return numpy.moveaxis(pixels, -1, 0) if pixels.ndim == 3 else pixels[None]


def save(path, image, **options):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    image.save(path, **options)
    return path


def fill(folder, classes=ANIMALS, count=5, ending=".png", kind=None, **options):
    """Folders of so many pictures; their paths, by class."""
    return {name: [save(f"{folder}/{name}/{i}{ending}", picture(f"{name} {i}"), format=kind, **options)
                   for i in range(count)] for name in classes}


def samples_of(paths, mode="RGB"):
    return [(name, shown(path, mode)) for name, files in paths.items() for path in files]


def sorted_folder(paths=None, options=("--colour",), with_job=True, **want):
    """Converted, and trained on as it lies, too."""
    sets = {"samples": samples_of(paths)} if paths else {}
    size = [option for option in options if "x" in option]
    job = {"set": "pictures", "root": "photos", "colour": True, **({"size": size[0]} if size else {})}
    return Want(convert=["photos", *options], job=job if with_job else None, **{**sets, **want})


# Formats.
FORMATS = {
    ".png": {}, ".PNG": {}, ".bmp": {}, ".ppm": {}, ".webp": {"lossless": True}, ".jpg": {"quality": 90}, ".JPG": {},
    ".jpeg": {"progressive": True}, ".jfif": {"kind": "JPEG"}, ".jpe": {"kind": "JPEG"},
}
for ending, options in FORMATS.items():
    @case("formats", f"{ending} {options or ''}".strip())
    def _(folder, ending=ending, options=options):
        return sorted_folder(fill(f"{folder}/photos", ending=ending, **options), shape=(3, 6, 8))


MODES = {"grey": "L", "palette": "P", "black and white": "1", "transparent": "RGBA", "grey and transparent": "LA"}
for name, mode in MODES.items():
    @case("formats", f"png: {name}")
    def _(folder, mode=mode):
        paths = {animal: [save(f"{folder}/photos/{animal}/{i}.png", picture(f"{animal} {i}", mode=mode)) for i in range(5)]
                 for animal in ANIMALS}
        return sorted_folder(paths)


@case("formats", "png: grey, as grey")
def _(folder):
    paths = {animal: [save(f"{folder}/photos/{animal}/{i}.png", picture(f"{animal} {i}", mode="L")) for i in range(5)]
             for animal in ANIMALS}
    return sorted_folder(options=(), with_job=False, samples=samples_of(paths, "L"), shape=(1, 6, 8))


for gamma in (22727, 45455, 55556, 100000):
    @case("formats", f"png: gAMA {gamma}")
    def _(folder, gamma=gamma):
        info = PngImagePlugin.PngInfo()
        info.add(b"gAMA", struct.pack(">I", gamma))
        return sorted_folder(fill(f"{folder}/photos", pnginfo=info))


@case("formats", "png: 16 bits")
def _(folder):
    samples = []
    for animal in ANIMALS:
        for i in range(5):
            deep = random_of(f"{animal} {i}").integers(0, 65536, (6, 8), dtype=numpy.uint16)
            save(f"{folder}/photos/{animal}/{i}.png", Image.fromarray(deep))
            samples.append((animal, deep / 257))
    return sorted_folder(options=(), with_job=False, samples=samples, near=1, said="16|bits")


@case("formats", "png: 16 bits beside 8")
def _(folder):
    paths = fill(f"{folder}/photos", ["bee", "cat"])
    deep = Image.fromarray(random_of("deep").integers(0, 65536, (6, 8), dtype=numpy.uint16))
    files = [save(f"{folder}/photos/dog/{i}.png", deep) for i in range(5)]
    return sorted_folder(samples=samples_of(paths) + [("dog", None) for _ in files], said="16|bits")


for orientation in (1, 3, 6, 8):
    for ending, options in ((".jpg", {}), (".png", {}), (".webp", {"lossless": True})):
        @case("exif", f"{ending} that is turned by {orientation}")
        def _(folder, orientation=orientation, ending=ending, options=options):
            exif = Image.Exif()
            exif[0x0112] = orientation
            return sorted_folder(fill(f"{folder}/photos", ending=ending, exif=exif, **options),  
                                 shape=(3, 8, 6) if orientation > 4 else (3, 6, 8))


@case("formats", "jpeg: CMYK")
def _(folder):
    paths = {animal: [save(f"{folder}/photos/{animal}/{i}.jpg", picture(f"{animal} {i}", mode="CMYK")) for i in range(5)]
             for animal in ANIMALS}
    return sorted_folder(samples=[(animal, None) for animal, files in paths.items() for _ in files])
