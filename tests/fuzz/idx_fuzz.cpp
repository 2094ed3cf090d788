// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Any bytes as an IDX file and as one of CIFAR's. As they are, and packed by gzip, which must come to the
/// same.
#include "data/byte_source.hpp"
#include "data/idx.hpp"
#include "data/sets/cifar_set.hpp"
#include "data/sets/names.hpp"
#include "tests/fuzz/checks.hpp"

#include <zlib.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace {

using lockstep::IdxArray;
using lockstep::fuzz::accepted;
using lockstep::fuzz::report;
using Bytes = std::vector<std::uint8_t>;

std::optional<IdxArray> parse(std::span<const std::uint8_t> file) {
  return accepted([&] { return lockstep::parse_idx(file, "fuzz"); });
}

/// One gzip member, packed quickly: level 1, a window of 512 bytes.
Bytes gzip(std::span<const std::uint8_t> plain) {
  z_stream stream{};
  if (deflateInit2(&stream, 1, Z_DEFLATED, 9 + 16, 1, Z_DEFAULT_STRATEGY) != Z_OK)
    report("deflateInit2 failed\n");
  Bytes packed(deflateBound(&stream, plain.size()) + 64);
  stream.next_in = const_cast<Bytef*>(plain.data());  // zlib does not write there
  stream.avail_in = static_cast<uInt>(plain.size());
  stream.next_out = packed.data();
  stream.avail_out = static_cast<uInt>(packed.size());
  if (deflate(&stream, Z_FINISH) != Z_STREAM_END) report("deflate failed\n");
  packed.resize(stream.total_out);
  deflateEnd(&stream);
  return packed;
}

void check_accepted(const IdxArray& array, std::uint64_t most_bytes) {
  std::uint64_t size = 1;
  for (const std::int64_t dim : array.dims) size *= static_cast<std::uint64_t>(dim);
  if (array.dims.empty() || size == 0 || size != array.bytes.size()) report("sizes disagree\n");
  if (size > most_bytes) report("more data than the file can hold\n");
}

bool same(const IdxArray& a, const IdxArray& b) {
  const auto x = a.bytes.span(), y = b.bytes.span();
  return a.dims == b.dims && std::equal(x.begin(), x.end(), y.begin(), y.end());
}

/// Small records, so that short inputs hold some.
constexpr lockstep::CifarLayout kRecords{.label_bytes = 2, .features = 12, .classes = 7};

std::optional<lockstep::CifarRecords> parse_records(std::span<const std::uint8_t> file) {
  lockstep::MemorySource source(file, "fuzz");
  return accepted([&] { return lockstep::parse_cifar(source, kRecords); });
}

void check_records(std::span<const std::uint8_t> file, bool is_gzip) {
  const auto direct = parse_records(file), packed = parse_records(gzip(file));
  if (packed.has_value() != (direct.has_value() && !is_gzip))
    report("plain and gzip disagree on whether these are records\n");
  if (!direct) return;
  if (direct->images.size() != direct->labels.size() * kRecords.features)
    report("images and labels disagree\n");
  for (const std::int32_t label : direct->labels)
    if (label < 0 || label >= static_cast<int>(kRecords.classes)) report("a label out of range\n");
  if (packed && (packed->labels != direct->labels || packed->images != direct->images))
    report("plain and gzip disagree on the records\n");
}

void check_names(std::span<const std::uint8_t> file) {
  lockstep::fuzz::accepts([&] {
    for (const std::string& name : lockstep::parse_class_names(lockstep::as_text(file), "fuzz"))
      if (lockstep::trouble_with_class_name(name) != nullptr) report("a name that is none\n");
  });
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::span file(data, size);
  const bool is_gzip = size >= 2 && data[0] == 0x1F && data[1] == 0x8B;
  check_records(file, is_gzip);
  check_names(file);
  const auto direct = parse(file);
  if (direct) check_accepted(*direct, is_gzip ? 1032 * size : size);
  const auto packed = parse(gzip(file));
  if (packed.has_value() != (direct.has_value() && !is_gzip))
    report("plain and gzip disagree on whether to accept\n");
  if (packed && !same(*direct, *packed)) report("plain and gzip disagree on the data\n");
  return 0;
}
