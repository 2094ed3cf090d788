// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Tables as files, of numbers in text and in numpy's arrays, and the sets that they become.
#pragma once

#include "data/dataset.hpp"
#include "data/sets/set_loading.hpp"
#include "data/tables/table_conversion.hpp"
#include "tests/data/idx_fixture.hpp"

namespace lockstep::table_test {

/// A header as it is, after a version and its length.
inline test::Bytes with_header(const std::string& head, std::uint8_t version, std::size_t length) {
  return test::bytes_of("\x93NUMPY" + test::little_endian_text(version, 2) +
                        test::little_endian_text(length, version == 1 ? 2 : 4) + head);
}

/// An array as numpy.save writes it.
template <typename T>
test::Bytes npy(const std::string& descr, const std::string& shape, const std::vector<T>& elements,
                const char* fortran_order = "False") {
  std::string head =
      "{'descr': '" + descr + "', 'fortran_order': " + fortran_order + ", 'shape': (" + shape + "), }\n";
  test::Bytes bytes = with_header(head, 1, head.size());
  const auto* data = reinterpret_cast<const std::uint8_t*>(elements.data());
  bytes.insert(bytes.end(), data, data + elements.size() * sizeof(T));
  return bytes;
}

class TableTest : public test::DirectoryTest {
 protected:
  std::string index_of(const std::string& set) const { return test::text_in(path(set + "/shards.index")); }
  TableConversion convert(const std::string& table, const std::string& set, bool skip_damaged = false) const {
    TableConversionOptions options = options_;
    options.table.from = path(table);
    options.to = path(set);
    if (skip_damaged) options.skip_damaged = true;
    return convert_table(Env::posix(), options);
  }
  TrainTestData load(const std::string& set) const {
    return load_dataset({.set = "table", .root = path(set)});
  }

  TableConversionOptions options_ = {.to = "", .split = {.test = {.samples = 1}}};
};

inline constexpr const char* kTable = "w,kind,h\n1,b,9\n2,b,9\n3,a,9\n4,b,9\n6,a,9\n8,a,9\n";

}  // namespace lockstep::table_test
