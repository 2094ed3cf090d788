// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The initialisers of a graph as named tensors; its nodes are not read.
#include "common/error.hpp"
#include "common/printable.hpp"
#include "models/onnx/onnx.hpp"

#include <climits>
#include <fmt/format.h>
#include <onnx_schema.pb.h>

#include <set>
#include <utility>

namespace lockstep {
namespace {

constexpr int kMostDimensions = kMaxSafetensorsRank;

/// "": no type that weights have, such as the whole numbers of a shape.
std::string dtype_of(const onnx::TensorProto& tensor) {
  switch (tensor.data_type()) {
    case onnx::TensorProto::FLOAT:
      return "F32";
    case onnx::TensorProto::FLOAT16:
      return "F16";
    case onnx::TensorProto::BFLOAT16:
      return "BF16";
    case onnx::TensorProto::DOUBLE:
      return "F64";
    default:
      return "";
  }
}

std::span<const std::byte> fp32_bytes(const onnx::TensorProto& tensor) {
  if (tensor.has_raw_data())
    return std::as_bytes(std::span(tensor.raw_data().data(), tensor.raw_data().size()));
  return std::as_bytes(
      std::span(tensor.float_data().data(), static_cast<std::size_t>(tensor.float_data_size())));
}

/// "" or what is wrong with a tensor whose numbers may be taken.
std::string why_unusable(const onnx::TensorProto& tensor, const SafetensorsEntry& entry) {
  std::size_t bytes = 0;
  if (tensor.data_location() == onnx::TensorProto::EXTERNAL)
    return "lies in another file; export the model into one file (in PyTorch: external_data=False)";
  if (!safetensors_tensor_bytes(entry.dtype, entry.shape, &bytes) ||
      (entry.dtype == "F32" && bytes != entry.end - entry.begin))
    return "has not the bytes that its shape takes; the file is damaged";
  return "";
}

}  // namespace

SafetensorsFile read_onnx(std::vector<std::byte> bytes, const std::string& file) {
  onnx::ModelProto model;
  if (bytes.size() > INT_MAX || !model.ParseFromArray(bytes.data(), static_cast<int>(bytes.size())) ||
      !model.has_graph())
    throw DataError(fmt::format("{}: is no ONNX model, or one that is cut off; export it again", file));
  std::vector<std::byte>& numbers = bytes;  // takes no more than the file did
  numbers.clear();
  std::vector<SafetensorsEntry> entries;
  std::set<std::string> names;
  for (const onnx::TensorProto& tensor : model.graph().initializer()) {
    SafetensorsEntry entry{tensor.name(), dtype_of(tensor), {}, 0, 0};
    const bool has_shape = tensor.dims_size() > 0 && tensor.dims_size() <= kMostDimensions;
    if (entry.dtype.empty() || !has_shape) continue;  // no weights
    entry.shape.assign(tensor.dims().begin(), tensor.dims().end());
    const auto from = entry.dtype == "F32" ? fp32_bytes(tensor) : std::span<const std::byte>();
    entry.begin = numbers.size(), entry.end = entry.begin + from.size();
    std::string wrong = why_unusable(tensor, entry);
    if (!names.insert(entry.name).second) wrong = "is there twice; the file is damaged";
    if (!wrong.empty())
      throw DataError(fmt::format("{}: tensor {} {}", file, quoted_text(entry.name), wrong));
    numbers.insert(numbers.end(), from.begin(), from.end());
    entries.push_back(std::move(entry));
  }
  return SafetensorsFile::of_entries(std::move(entries), std::move(bytes), 0, file);
}

}  // namespace lockstep
