// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Any bytes as rows of text, as an array of numpy's and as an archive of such.
#include "common/descriptor.hpp"
#include "data/byte_source.hpp"
#include "data/tables/readers.hpp"
#include "data/tables/table.hpp"
#include "tests/fuzz/checks.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <cmath>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace {

using Bytes = std::span<const std::uint8_t>;
using Rows = std::vector<std::vector<std::string>>;
using lockstep::fuzz::accepts;
using lockstep::fuzz::report;

/// All rows; false where the parser refuses with the error that it promises.
bool read_rows(Bytes text, char separator, Rows& rows, bool& has_stray_text) {
  lockstep::MemorySource source(text, "fuzz");
  lockstep::CsvReader reader(source, separator);
  return accepts([&] {
    while (reader.next()) {
      const auto fields = reader.fields();
      rows.emplace_back(fields.begin(), fields.end());
      has_stray_text = has_stray_text || reader.has_stray_text();
      for (const std::string& field : fields) {
        float value = 0;
        if (lockstep::read_feature(field, value) == nullptr && !std::isfinite(value))
          report("a number that is none\n");
      }
    }
  });
}

/// Every field in quotes: the same rows must come back.
void check_text(Bytes text, char separator) {
  Rows rows, again;
  bool has_stray_text = false, has_stray_again = false;
  if (!read_rows(text, separator, rows, has_stray_text)) return;
  std::string written;
  for (const auto& row : rows) {
    for (std::size_t i = 0; i < row.size(); ++i) {
      if (i > 0) written.push_back(separator);
      written.push_back('"');
      for (const char c : row[i]) written += c == '"' ? std::string("\"\"") : std::string(1, c);
      written.push_back('"');
    }
    written += "\r\n";
  }
  const Bytes bytes(reinterpret_cast<const std::uint8_t*>(written.data()), written.size());
  if (!read_rows(bytes, separator, again, has_stray_again) || has_stray_again || rows != again)
    report("rows that were written in quotes are other ones\n");
}

void check_array(std::unique_ptr<lockstep::ByteSource> source) {
  accepts([&] {
    lockstep::NpyRows rows(std::move(source));
    const auto& header = rows.header();
    std::vector<float> row(header.row_elements());
    std::string label;
    for (std::int64_t i = 0; i < rows.size(); ++i) {
      if (header.row_elements() == 1 && i % 2 == 0)
        rows.next_label(label);
      else if (rows.next(row) < 0)
        for (const float value : row)
          if (!std::isfinite(value)) report("an element that is not a number\n");
    }
  });
}

void check_archive(Bytes file) {
  accepts([&] {
    const lockstep::Descriptor memory(::memfd_create("fuzz", MFD_CLOEXEC));
    if (::write(memory, file.data(), file.size()) != static_cast<ssize_t>(file.size())) report("no memory\n");
    const lockstep::NpzArchive archive("/proc/self/fd/" + std::to_string(static_cast<int>(memory)));
    for (std::size_t i = 0; i < archive.names().size() && i < 16; ++i)
      check_array(archive.open(archive.names()[i]));
  });
}

}  // namespace

/// The first byte says as what the others are taken.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const Bytes file(data + 1, size - 1);
  switch (data[0] % 4) {
    case 0:
      check_text(file, ',');
      break;
    case 1:
      check_text(file, ';');
      break;
    case 2:
      check_array(std::make_unique<lockstep::MemorySource>(file, "fuzz"));
      break;
    default:
      check_archive(file);
  }
  return 0;
}
