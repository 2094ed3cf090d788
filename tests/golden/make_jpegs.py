#!/usr/bin/env python3
# SPDX-FileCopyrightText: 2026 The Lockstep authors
# SPDX-License-Identifier: MIT
"""Makes tests/golden/jpeg/*.jpg, a picture for each kind of JPEG: cjpeg (libjpeg-turbo-progs), Pillow and numpy.
pixels.txt there has the SHA-256 of the pixels of each, in grey and in colour, as Lockstep reads them. Six of them moved to
data/pictures/known: the program has them, and refuses a JPEG library that gives them other pixels."""
import os, subprocess
import numpy as np
from PIL import Image

folder = os.path.join(os.path.dirname(os.path.abspath(__file__)), "jpeg")
rng = np.random.default_rng(29)

def image(width, height, channels):
    y, x = np.mgrid[0:height, 0:width]
    planes = [np.sin(x * 0.21 * (c + 1)) + np.cos(y * 0.33 + c) + ((x // 9 + y // 7 + c) % 2) for c in range(channels)]
    noisy = np.stack(planes, -1) + rng.normal(0, 0.1, (height, width, channels))
    return ((noisy - noisy.min()) / (noisy.max() - noisy.min()) * 255).astype(np.uint8)

def cjpeg(name, *options, width=45, height=37):
    head = f"P6 {width} {height} 255\n".encode()
    with open(os.path.join(folder, name), "wb") as file:
        subprocess.run(["cjpeg", *options], input=head + image(width, height, 3).tobytes(), stdout=file, check=True)

cjpeg("420.jpg", "-quality", "80")
cjpeg("422-restarts.jpg", "-quality", "70", "-sample", "2x1", "-restart", "1")
cjpeg("440.jpg", "-quality", "70", "-sample", "1x2")
cjpeg("411.jpg", "-quality", "70", "-sample", "4x1")
cjpeg("410.jpg", "-quality", "70", "-sample", "4x2")
cjpeg("444-best.jpg", "-quality", "100", "-sample", "1x1", width=19, height=17)
cjpeg("progressive.jpg", "-quality", "60", "-progressive")
cjpeg("arithmetic.jpg", "-quality", "60", "-arithmetic")
cjpeg("mixed.jpg", "-quality", "60", "-sample", "2x2,1x2,2x1")
cjpeg("thin.jpg", "-quality", "60", width=3, height=40)
cjpeg("pixel.jpg", "-quality", "60", width=1, height=1)
cjpeg("worst.jpg", "-quality", "1")
Image.fromarray(image(33, 26, 1)[..., 0], "L").save(os.path.join(folder, "grey.jpg"), quality=75)
Image.fromarray(image(33, 26, 4), "CMYK").save(os.path.join(folder, "cmyk.jpg"), quality=75)
Image.fromarray(image(33, 26, 3), "RGB").save(os.path.join(folder, "rgb.jpg"), quality=75, keep_rgb=True)
sideways = Image.Exif()
sideways[0x112] = 6
Image.fromarray(image(33, 26, 3), "RGB").save(os.path.join(folder, "sideways.jpg"), quality=75, exif=sideways)
for name in "420.jpg", "422-restarts.jpg", "440.jpg", "444-best.jpg", "progressive.jpg", "cmyk.jpg":
    os.replace(os.path.join(folder, name), os.path.join(folder, "../../../data/pictures/known", name))
