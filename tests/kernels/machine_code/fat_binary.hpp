// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// What nvcc put into a program for GPUs: PTX for the driver to compile, and cubins, which are machine code for one
/// compute capability. They lie in the section .nv_fatbin, images one after another. NVIDIA documents cuobjdump, which
/// reads it, but not the format; this is what cuobjdump shows of programs made by CUDA 13.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::machine_code {

enum class ImageKind : std::uint16_t { kPtx = 1, kCubin = 2 };

struct Image {
  ImageKind kind;
  int capability;       ///< 90 for 9.0
  std::string options;  ///< that the driver is to compile PTX with
  std::string bytes;    ///< uncompressed; PTX: text
};

/// Something that is right, but not to be read here: what() says why.
struct Unreadable : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// @param program  an ELF file
/// @throws Unreadable          where an image is compressed in a way that is not known here
/// @throws std::runtime_error  if there is no such section, or it is damaged
std::vector<Image> images_of(std::string_view program);

}  // namespace lockstep::machine_code
