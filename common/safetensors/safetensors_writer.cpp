// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Writing safetensors: the same tensors always give the same bytes.
#include "common/error.hpp"
#include "common/safetensors/safetensors.hpp"
#include "common/safetensors/safetensors_header.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <set>

namespace lockstep {
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
    std::size_t bytes = 0;
    LOCKSTEP_CHECK(safetensors_tensor_bytes(tensor.dtype, tensor.shape, &bytes));
    LOCKSTEP_CHECK(bytes == tensor.bytes.size());
    LOCKSTEP_CHECK(names.insert(tensor.name).second);
    entries.push_back(fmt::format(R"({}:{{"dtype":"{}","shape":[{}],"data_offsets":[{},{}]}})",
                                  json(tensor.name).dump(), tensor.dtype, fmt::join(tensor.shape, ","),
                                  position, position + bytes));
    position += bytes;
  }
  std::string text = fmt::format("{{{}}}", fmt::join(entries, ","));
  const std::size_t excess = text.size() % kDataAlignment;
  if (excess != 0) text.append(kDataAlignment - excess, ' ');
  LOCKSTEP_CHECK(text.size() <= kMaxSafetensorsHeaderBytes);
  return text;
}

}  // namespace

std::vector<std::byte> write_safetensors(std::span<const TensorView> tensors,
                                         const std::map<std::string, std::string>& metadata) {
  const std::string header = header_json(tensors, metadata);
  std::size_t size = kSafetensorsPrefixBytes + header.size();
  for (const TensorView& tensor : tensors) size += tensor.bytes.size();

  std::vector<std::byte> file;
  file.reserve(size);
  for (std::size_t i = 0; i < kSafetensorsPrefixBytes; ++i)
    file.push_back(static_cast<std::byte>(header.size() >> (8 * i)));
  const auto* text = reinterpret_cast<const std::byte*>(header.data());
  file.insert(file.end(), text, text + header.size());
  for (const TensorView& tensor : tensors) file.insert(file.end(), tensor.bytes.begin(), tensor.bytes.end());
  return file;
}

}  // namespace lockstep
