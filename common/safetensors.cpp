// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Files of tensors, read and written.
#include "common/safetensors.hpp"

#include "common/error.hpp"
#include "common/printable.hpp"
#include "common/text_layout.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <bit>
#include <cstring>
#include <set>
#include <utility>

namespace lockstep {

// Reading safetensors from untrusted bytes.

namespace {

/// The format's bound on the header.
constexpr std::size_t kMaxHeaderBytes = 100'000'000;

/// The JSON text, whose length the first eight bytes give.
std::string_view header_text(std::span<const std::byte> bytes, const std::string& file) {
  if (bytes.size() < kSafetensorsPrefixBytes)
    throw DataError(fmt::format("{}: is {} {} long, too short for a safetensors file", file, bytes.size(),
                                plural(bytes.size(), "byte")));
  static_assert(std::endian::native == std::endian::little);
  std::uint64_t size = 0;
  std::memcpy(&size, bytes.data(), sizeof size);
  const std::size_t room = bytes.size() - kSafetensorsPrefixBytes;
  if (size > std::min(room, kMaxHeaderBytes))
    throw DataError(
        fmt::format("{}: says its header takes {} bytes, but the file has {}: damaged, truncated, or "
                    "not a safetensors file",
                    file, size, room));
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()) + kSafetensorsPrefixBytes, size);
  if (!text.starts_with('{'))
    throw DataError(fmt::format("{}: the header does not start with '{{': not a safetensors file", file));
  return text;
}

std::string shape_text(const std::vector<std::size_t>& shape) {
  return fmt::format("[{}]", fmt::join(shape, ", "));
}

}  // namespace

SafetensorsFile SafetensorsFile::parse(std::vector<std::byte> bytes, const std::string& file) {
  const std::string_view text = header_text(bytes, file);
  const std::size_t data_start = kSafetensorsPrefixBytes + text.size();
  auto entries = parse_safetensors_header(text, bytes.size() - data_start, file);
  return of_entries(std::move(entries), std::move(bytes), data_start, file);
}

SafetensorsFile SafetensorsFile::of_entries(std::vector<SafetensorsEntry> entries,
                                            std::vector<std::byte> bytes, std::size_t start,
                                            const std::string& file) {
  SafetensorsFile result;
  result.file_ = file;
  result.bytes_ = std::move(bytes);
  const std::span<const std::byte> data = std::span<const std::byte>(result.bytes_).subspan(start);
  for (SafetensorsEntry& entry : entries)
    result.tensors_.push_back({std::move(entry.name), std::move(entry.dtype), std::move(entry.shape),
                               data.subspan(entry.begin, entry.end - entry.begin)});
  for (const TensorView& tensor : result.tensors_) result.by_name_.emplace(tensor.name, &tensor);
  return result;
}

const TensorView* SafetensorsFile::find(const std::string& name) const {
  const auto found = by_name_.find(name);
  return found == by_name_.end() ? nullptr : found->second;
}

const TensorView& SafetensorsFile::require(const std::string& name, const std::string& dtype,
                                           const std::vector<std::size_t>& shape) const {
  const TensorView* tensor = find(name);
  if (tensor == nullptr)
    throw DataError(fmt::format("{}: has no tensor {}; is it of another model?", file_, quoted_text(name)));
  if (tensor->dtype != dtype || tensor->shape != shape)
    throw DataError(fmt::format("{}: tensor {} is {} {}, but the model needs {} {}", file_, quoted_text(name),
                                tensor->dtype, shape_text(tensor->shape), dtype, shape_text(shape)));
  return *tensor;
}

// Writing safetensors: the same tensors always give the same bytes.

namespace {

/// The data starts at a multiple of this, as the format recommends; the header is padded with spaces.
constexpr std::size_t kDataAlignment = 8;

std::string header_json(std::span<const TensorView> tensors,
                        const std::map<std::string, std::string>& metadata) {
  using nlohmann::json;
  std::vector<std::string> entries;
  if (!metadata.empty()) entries.push_back(R"("__metadata__":)" + json(metadata).dump());
  std::set<std::string> names{"__metadata__"};
  std::size_t position = 0;
  for (const TensorView& tensor : tensors) {
    LOCKSTEP_CHECK(safetensors_tensor_bytes(tensor.dtype, tensor.shape) == tensor.bytes.size());
    LOCKSTEP_CHECK(names.insert(tensor.name).second);
    entries.push_back(fmt::format(R"({}:{{"dtype":"{}","shape":[{}],"data_offsets":[{},{}]}})",
                                  json(tensor.name).dump(), tensor.dtype, fmt::join(tensor.shape, ","),
                                  position, position + tensor.bytes.size()));
    position += tensor.bytes.size();
  }
  std::string text = fmt::format("{{{}}}", fmt::join(entries, ","));
  while (text.size() % kDataAlignment != 0) text += ' ';
  LOCKSTEP_CHECK(text.size() <= kMaxHeaderBytes);
  return text;
}

}  // namespace

std::vector<std::byte> safetensors_head(std::span<const TensorView> tensors,
                                        const std::map<std::string, std::string>& metadata) {
  const std::string header = header_json(tensors, metadata);
  std::vector<std::byte> head;
  for (std::size_t i = 0; i < kSafetensorsPrefixBytes; ++i)
    head.push_back(static_cast<std::byte>(header.size() >> (8 * i)));
  const auto* text = reinterpret_cast<const std::byte*>(header.data());
  head.insert(head.end(), text, text + header.size());
  return head;
}

std::vector<std::byte> write_safetensors(std::span<const TensorView> tensors,
                                         const std::map<std::string, std::string>& metadata) {
  std::vector<std::byte> file = safetensors_head(tensors, metadata);
  std::size_t size = file.size();
  for (const TensorView& tensor : tensors) size += tensor.bytes.size();
  file.reserve(size);
  for (const TensorView& tensor : tensors) file.insert(file.end(), tensor.bytes.begin(), tensor.bytes.end());
  return file;
}

}  // namespace lockstep
