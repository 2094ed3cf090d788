// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Archives of arrays, as numpy.savez writes them.
#pragma once

#include "tests/data/idx_fixture.hpp"

#include <zlib.h>

namespace lockstep::npz_test {

struct NamedArray {
  std::string name, descr, shape;
  std::string elements;  ///< little-endian
};

/// With their directory at the end.
inline test::Bytes npz(const std::vector<NamedArray>& arrays) {
  const auto number = test::little_endian_text;
  std::string file, directory;
  for (const NamedArray& array : arrays) {
    const std::string head =
        fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': ({}), }}\n", array.descr, array.shape);
    const std::string body = "\x93NUMPY\x01" + number(0, 1) + number(head.size(), 2) + head + array.elements;
    const std::string name = array.name + ".npy";
    const auto crc = crc32_z(0, reinterpret_cast<const Bytef*>(body.data()), body.size());
    const std::string facts = number(0, 8) + number(crc, 4) + number(body.size(), 4) +
                              number(body.size(), 4) + number(name.size(), 2) + number(0, 2);
    directory += "PK\1\2" + number(0, 4) + facts + number(0, 10) + number(file.size(), 4) + name;
    file += "PK\3\4" + number(0, 2) + facts + name + body;
  }
  const std::string end =
      "PK\5\6" + number(0, 8) + number(directory.size(), 4) + number(file.size(), 4) + number(0, 2);
  return test::bytes_of(file + directory + end);
}

inline std::string counting(int count, int first = 0) {
  std::string bytes;
  for (int i = 0; i < count; ++i) bytes.push_back(static_cast<char>(first + i));
  return bytes;
}

template <typename Number>
std::string elements(std::initializer_list<Number> numbers) {
  return {reinterpret_cast<const char*>(numbers.begin()), numbers.size() * sizeof(Number)};
}

}  // namespace lockstep::npz_test
