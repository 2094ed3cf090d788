// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Any bytes as the index of a set in shards. As they are, and as a head whose SHA-256 is right. What is
/// accepted is written and read again, and is the same.
#include "common/digest.hpp"
#include "data/sets/shards.hpp"
#include "tests/fuzz/checks.hpp"

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace {

using lockstep::fuzz::report;

std::optional<lockstep::ShardIndex> parse(std::string_view text) {
  return lockstep::fuzz::accepted([&] { return lockstep::parse_shard_index(text, "fuzz"); });
}

void check(const lockstep::ShardIndex& index) {
  const lockstep::ShardSizes& sizes = index.sizes;
  if (index.shape.features() < 1 || index.shape.features() > 1 << 24) report("a shape out of range\n");
  if (sizes.block_bytes < 512 || sizes.shard_bytes % sizes.block_bytes != 0) report("blocks out of range\n");
  for (const lockstep::ShardHalf* half : {&index.train, &index.test}) {
    if (half->samples < 1 || half->samples > INT32_MAX) report("samples out of range\n");
    if (index.bytes_of(*half) / sizes.shard_bytes > 100'000) report("too many files\n");
    if (half->sums.values.size() != (index.is_fp32 ? 0 : static_cast<std::size_t>(index.shape.channels)))
      report("sums are missing\n");
  }
  const std::string text = lockstep::to_text(index);
  const auto again = parse(text);
  if (!again || lockstep::to_text(*again) != text) report("what was written is not read\n");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (const auto index = parse(text)) check(*index);
  std::string head(text.substr(0, text.find('\n')));
  head += "\n" + lockstep::hex(lockstep::sha256(std::as_bytes(std::span(head)))) + "\n";
  if (const auto index = parse(head)) check(*index);
  lockstep::is_name_in_shards(text);
  return 0;
}
