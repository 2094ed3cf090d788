// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Numbers of the files in tests/golden.
#pragma once

#include "common/env.hpp"
#include "common/safetensors.hpp"
#include "models/arena.hpp"
#include "tests/support/prelude.hpp"

namespace lockstep::test {

inline SafetensorsFile read_safetensors(const std::string& path) {
  return SafetensorsFile::parse(Env::posix().read(path), path);
}

/// @throws DataError  there is no such tensor, or it has another type or shape
template <typename T>
std::vector<T> values_of(const SafetensorsFile& file, const std::string& name, const char* type,
                         const std::vector<std::size_t>& shape) {
  const TensorView& tensor = file.require(name, type, shape);
  std::vector<T> values(tensor.bytes.size() / sizeof(T));
  std::memcpy(values.data(), tensor.bytes.data(), tensor.bytes.size());
  return values;
}

/// A network's tensors one behind the other, each from that of its name behind `prefix`.
template <typename T>
std::vector<T> weights_of(const SafetensorsFile& file, const std::vector<Parameter>& tensors,
                          const std::string& prefix, const char* type) {
  std::vector<T> all;
  for (const Parameter& tensor : tensors) {
    const auto part =
        values_of<T>(file, prefix + tensor.name, type, {tensor.shape.begin(), tensor.shape.end()});
    all.insert(all.end(), part.begin(), part.end());
  }
  return all;
}

}  // namespace lockstep::test
