// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Making and checking the checksums of a file.
#include "trainer/checkpoint/file_record.hpp"

#include "common/digest.hpp"
#include "common/printable.hpp"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <utility>

namespace lockstep {

namespace {

std::uint32_t crc32_of(std::span<const std::byte> bytes) {
  return static_cast<std::uint32_t>(
      ::crc32(0, reinterpret_cast<const Bytef*>(bytes.data()), static_cast<uInt>(bytes.size())));
}

std::span<const std::byte> block_of(std::span<const std::byte> section, std::size_t index) {
  const std::size_t begin = index * kChecksumBlockBytes;
  return section.subspan(begin, std::min(kChecksumBlockBytes, section.size() - begin));
}

}  // namespace

std::string to_string(const Damage& damage) {
  if (damage.tensor.empty()) return fmt::format("{}: {}", damage.path, damage.cause);
  return fmt::format("{}: tensor {}: {}", damage.path, quoted_text(damage.tensor), damage.cause);
}

std::size_t checksum_blocks(std::size_t bytes) {
  return bytes / kChecksumBlockBytes + (bytes % kChecksumBlockBytes != 0 ? 1 : 0);
}

FileRecord record_of(const std::string& name, std::span<const std::byte> head,
                     std::span<const TensorView> tensors) {
  FileRecord record{name, 0, "", {}};
  Sha256 hash;
  const auto add = [&](const std::string& tensor, std::span<const std::byte> bytes) {
    const std::size_t begin = std::exchange(record.bytes, record.bytes + bytes.size());
    SectionRecord& section = record.sections.emplace_back(SectionRecord{tensor, begin, record.bytes, {}});
    for (std::size_t i = 0; i < checksum_blocks(bytes.size()); ++i)
      section.crc32s.push_back(crc32_of(block_of(bytes, i)));
    hash.update(bytes);
  };
  add("", head);
  for (const TensorView& tensor : tensors) add(tensor.name, tensor.bytes);
  record.sha256 = hex(hash.finish());
  return record;
}

Damage size_damage(const FileRecord& record, std::uint64_t size, const std::string& path) {
  const auto hit = std::find_if(record.sections.begin(), record.sections.end(),
                                [&](const auto& s) { return s.end > size; });
  const std::string sizes = fmt::format("the file is {} bytes long and should be {}", size, record.bytes);
  if (hit == record.sections.end()) return {path, "", sizes + ": it was added to"};
  return {path, hit->name, sizes + (hit->name.empty() ? ": cut off inside the header" : ": cut off here")};
}

std::vector<Damage> check_against(const FileRecord& record, std::span<const std::byte> bytes,
                                  const std::string& path) {
  if (bytes.size() != record.bytes) return {size_damage(record, bytes.size(), path)};
  std::vector<Damage> damages;
  for (const SectionRecord& section : record.sections) {
    const auto part = bytes.subspan(section.begin, section.end - section.begin);
    for (std::size_t i = 0; i < section.crc32s.size(); ++i) {
      const auto block = block_of(part, i);
      if (crc32_of(block) == section.crc32s[i]) continue;
      const auto begin = block.data() - bytes.data();
      damages.push_back(
          {path, section.name,
           fmt::format("{}bytes {} to {} of the file are damaged", section.name.empty() ? "header: " : "",
                       begin, begin + std::ssize(block) - 1)});
    }
  }
  if (damages.empty() && hex(sha256(bytes)) != record.sha256)
    damages.push_back({path, "", "its SHA-256 is not the one in the manifest"});
  return damages;
}

}  // namespace lockstep
