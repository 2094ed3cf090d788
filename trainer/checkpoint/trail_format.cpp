// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Heads and records in bytes, little-endian.
#include "trainer/checkpoint/trail_format.hpp"

#include "common/text_layout.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>
#include <utility>

namespace lockstep {

namespace {

using Tensors = std::vector<CheckpointParameter>;

/// "conv1.weight [12]"; "none" after the last.
std::string shown(const Tensors& tensors, std::size_t i) {
  return i < tensors.size() ? fmt::format("{} [{}]", tensors[i].name, tensors[i].elements()) : "none";
}

/// The first tensor that differs, and how many do after it: "a [12] there, none here, and 3 more". "" if none does.
std::string first_difference(const Tensors& a, const Tensors& b) {
  std::string first;
  std::int64_t more = 0;
  for (std::size_t i = 0; i < std::max(a.size(), b.size()); ++i) {
    const std::string there = shown(a, i), here = shown(b, i);
    if (there == here) continue;
    if (first.empty())
      first = fmt::format("{} there, {} here", there, here);
    else
      ++more;
  }
  return more == 0 ? first : fmt::format("{}, and {} more", first, with_thousands(more));
}

std::string listed(const std::vector<std::string>& buffers) {
  return buffers.empty() ? "none" : fmt::format("{}", fmt::join(buffers, ", "));
}

/// Shortens a network's text to its length.
std::string shortened(const std::string& value) {
  constexpr std::size_t kMost = 80;
  return value.size() <= kMost && value.find('\n') == value.npos
             ? value
             : fmt::format("{} bytes of text", value.size());
}

}  // namespace

std::vector<std::string> differences(const TrailHead& a, const TrailHead& b) {
  std::vector<std::string> list;
  for (const auto& [name, value] : a.facts) {
    const auto other = b.facts.find(name);
    if (other == b.facts.end() || other->second == value) continue;
    list.push_back(fmt::format("{} ({} there, {} here)", name, shortened(value), shortened(other->second)));
  }
  for (const auto& [what, tensors] :
       {std::pair{"tensors", &TrailHead::trained}, {"kept tensors", &TrailHead::kept}})
    if (const std::string found = first_difference(a.*tensors, b.*tensors); !found.empty())
      list.push_back(fmt::format("{} ({})", what, found));
  if (a.buffers != b.buffers)
    list.push_back(
        fmt::format("the optimiser's buffers ({} there, {} here)", listed(a.buffers), listed(b.buffers)));
  return list;
}

std::vector<std::byte> write_trail_head(const TrailHead& head) {
  std::vector<std::byte> bytes;
  TrailBytesWriter out(bytes);
  out.raw(std::as_bytes(std::span(kTrailMagic)));
  out.u32(kTrailVersion);
  out.u32(0);  // bytes of the head, put in below
  for (const std::size_t number : {head.record_bytes(), head.trained.size(), head.kept.size(),
                                   head.buffers.size(), head.facts.size(), std::size_t{0}})
    out.u32(static_cast<std::uint32_t>(number));
  for (const auto* tensors : {&head.trained, &head.kept}) {
    for (const CheckpointParameter& tensor : *tensors) {
      out.u64(tensor.elements());
      out.text(tensor.name);
    }
  }
  for (const std::string& buffer : head.buffers) out.text(buffer);
  for (const auto& [name, value] : head.facts) {
    out.text(name);
    out.text(value);
  }
  const auto all = static_cast<std::uint32_t>(bytes.size() + sizeof(Sha256Digest));
  LOCKSTEP_CHECK(all <= kMaxTrailHeadBytes);
  std::memcpy(bytes.data() + kTrailHeadBytesAt, &all, sizeof all);
  out.raw(sha256(bytes));
  return bytes;
}

Sha256Digest chain_trail(const Sha256Digest& before, std::span<const std::byte> body) {
  Sha256 hash;
  hash.update(before);
  hash.update(body);
  return hash.finish();
}

TrailPosition trail_start(std::span<const std::byte> head) {
  TrailPosition start;
  std::ranges::copy(head.last(sizeof(Sha256Digest)), start.chain.begin());
  return start;
}

std::vector<std::byte> write_trail_record(const TrailHead& head, const TrailRecord& record,
                                          TrailPosition& position) {
  LOCKSTEP_CHECK(record.fingerprints.size() == head.slots());
  std::vector<std::byte> bytes;
  bytes.reserve(head.record_bytes());
  TrailBytesWriter out(bytes);
  out.u64(static_cast<std::uint64_t>(record.step));
  out.u32(record.arithmetic);
  out.u32(0);
  out.u64(record.apart);
  out.raw(std::as_bytes(std::span(record.fingerprints)));
  position.chain = chain_trail(position.chain, bytes);
  ++position.records;
  out.raw(position.chain);
  return bytes;
}

}  // namespace lockstep
