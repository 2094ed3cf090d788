// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
#include "program.hpp"

#include <algorithm>
#include <fstream>
#include <iterator>

namespace lockstep::machine_code {
namespace {

std::string contents_of(const std::filesystem::path& file) {
  std::ifstream stream(file, std::ios::binary);
  if (!stream) throw std::runtime_error("cannot read " + file.string());
  return {std::istreambuf_iterator<char>(stream), {}};
}

template <typename T>
void append(std::vector<T>& to, std::vector<T> from) {
  std::move(from.begin(), from.end(), std::back_inserter(to));
}

}  // namespace

const PtxKernel* Program::ptx_of(const std::string& symbol) const {
  const auto found =
      std::find_if(ptx.begin(), ptx.end(), [&](const PtxKernel& kernel) { return kernel.symbol == symbol; });
  return found == ptx.end() ? nullptr : &*found;
}

Program read_program(const std::filesystem::path& file) {
  Program program;
  for (const Image& image : images_of(contents_of(file))) {
    if (image.kind == ImageKind::kCubin) {
      append(program.cubins, kernels_of_cubin(image.bytes, image.capability));
    } else {
      append(program.ptx, kernels_of_ptx(image.bytes));
      program.ptx_options.push_back(image.options);
      if (std::find(program.ptx_for.begin(), program.ptx_for.end(), image.capability) ==
          program.ptx_for.end())
        program.ptx_for.push_back(image.capability);
    }
  }
  return program;
}

}  // namespace lockstep::machine_code
