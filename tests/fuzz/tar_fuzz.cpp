// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Any bytes as an archive of WebDataset, as they are and with checksums that are right. What is accepted lies in the
/// archive.
#include "data/sets/tar_samples.hpp"
#include "tests/fuzz/checks.hpp"

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace {

constexpr std::size_t kBlock = 512;

using lockstep::fuzz::report;

void check(const std::vector<lockstep::TarSample>& samples, std::size_t bytes) {
  for (const auto& [picture, label] : samples) {
    if (picture.offset > bytes || picture.bytes > bytes - picture.offset)
      report("a sample out of the archive\n");
    if (picture.name.empty() || picture.name.find('\n') != picture.name.npos)
      report("a name that is no line\n");
  }
  std::vector<std::vector<std::string>> words(1);
  for (const auto& [picture, label] : samples) words[0].push_back(label);
  const lockstep::TarLabels labels = lockstep::classes_of_words(words, {}, "fuzz");
  for (const std::int32_t label : labels.halves[0].labels)
    if (label < 0 || (!labels.sets && label >= static_cast<std::int64_t>(labels.class_names.size())))
      report("a label of no class\n");
}

void read_archive(std::span<const std::uint8_t> tar) {
  const auto read = [&](std::uint64_t offset, std::span<std::uint8_t> to) {
    const std::size_t count =
        std::min<std::size_t>(to.size(), tar.size() - std::min<std::uint64_t>(tar.size(), offset));
    if (count > 0) std::memcpy(to.data(), tar.data() + offset, count);
    return count;
  };
  for (const char* key : {lockstep::kLabelInCls, "k"})
    lockstep::fuzz::accepts([&] {
      check(lockstep::find_tar_samples(lockstep::TarReader(read, tar.size(), "fuzz"), key), tar.size());
    });
}

/// Adds the checksum of its header, so that the fuzzer gets past it, and a mark at the end.
std::vector<std::uint8_t> with_checksums(std::span<const std::uint8_t> bytes) {
  std::vector<std::uint8_t> tar(bytes.begin(), bytes.end());
  tar.resize((tar.size() + kBlock - 1) / kBlock * kBlock + 2 * kBlock);
  for (std::size_t at = 0; at < tar.size(); at += kBlock) {
    const std::span block = std::span(tar).subspan(at, kBlock);
    if (std::ranges::count(block, 0) == kBlock) continue;
    std::fill_n(block.begin() + 148, 8, std::uint8_t{' '});
    unsigned sum = 0;
    for (const std::uint8_t byte : block) sum += byte;
    char digits[8] = {};
    std::snprintf(digits, sizeof digits, "%06o", sum);
    std::memcpy(block.data() + 148, digits, 7);
  }
  return tar;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  read_archive({data, size});
  read_archive(with_checksums({data, size}));
  return 0;
}
