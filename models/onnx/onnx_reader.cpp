// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The initialisers of a graph as named tensors; its nodes are not read.
#include "common/env.hpp"
#include "common/error.hpp"
#include "common/printable.hpp"
#include "models/onnx/onnx.hpp"

#include <climits>
#include <fmt/format.h>
#include <onnx_schema.pb.h>

#include <cstdint>
#include <map>
#include <set>
#include <string_view>
#include <utility>

namespace lockstep {
namespace {

constexpr int kMostDimensions = kMaxSafetensorsRank;

/// "": no type that weights have, such as the whole numbers of a shape.
std::string dtype_of(const onnx::TensorProto& tensor) {
  static const std::map<std::int32_t, const char*> kNames{{onnx::TensorProto::FLOAT, "F32"},
                                                          {onnx::TensorProto::FLOAT16, "F16"},
                                                          {onnx::TensorProto::BFLOAT16, "BF16"},
                                                          {onnx::TensorProto::DOUBLE, "F64"}};
  const auto found = kNames.find(tensor.data_type());
  return found == kNames.end() ? "" : found->second;
}

/// A tensor of a file, for messages.
struct NamedTensor {
  const std::string& file;
  const onnx::TensorProto& proto;

  template <typename E = DataError>
  [[noreturn]] void refuse(const std::string& why) const {
    throw E(fmt::format("{}: tensor {} {}", file, quoted_text(proto.name()), why));
  }
};

/// Appends numbers that the .onnx itself has.
void append_inner(const NamedTensor& tensor, std::vector<std::byte>& numbers) {
  const auto append = [&](const void* first, std::size_t bytes) {
    const auto* begin = static_cast<const std::byte*>(first);
    numbers.insert(numbers.end(), begin, begin + bytes);
  };
  const onnx::TensorProto& proto = tensor.proto;
  if (proto.has_raw_data()) return append(proto.raw_data().data(), proto.raw_data().size());
  if (proto.data_type() == onnx::TensorProto::FLOAT)
    return append(proto.float_data().data(),
                  sizeof(float) * static_cast<std::size_t>(proto.float_data_size()));
  for (const std::int32_t value : proto.int32_data()) {  // the bits of a half
    const auto bits = static_cast<std::uint16_t>(value);
    if (bits != value) tensor.refuse("has a number of more than 16 bits; the file is damaged");
    append(&bits, sizeof bits);
  }
}

/// Bytes of a file beside the .onnx.
struct OuterRange {
  std::string location;
  std::uint64_t offset = 0, length = 0;

  void require_inside(std::uint64_t size, const NamedTensor& tensor) const {
    if (offset > size || length > size - offset)
      tensor.refuse(fmt::format("takes {} bytes from byte {} of {}, which has {}; copy that file again",
                                length, offset, quoted_text(location), size));
  }
};

std::uint64_t number_in(const std::string& text, const NamedTensor& tensor) {
  const auto value = parse_whole<std::uint64_t>(text);
  if (!value)
    tensor.refuse(fmt::format("lies in another file, at {}, which is not a number; export the model again",
                              quoted_text(text)));
  return *value;
}

/// @param bytes  size by the tensor's shape
OuterRange outer_range(const NamedTensor& tensor, std::size_t bytes) {
  OuterRange range{"", 0, bytes};
  for (const onnx::StringStringEntryProto& field : tensor.proto.external_data()) {
    if (field.key() == "location") range.location = field.value();
    if (field.key() == "offset") range.offset = number_in(field.value(), tensor);
    if (field.key() == "length") range.length = number_in(field.value(), tensor);
  }
  return range;
}

/// The plain file of that plain name in the model's folder. A model can name nothing else of the disk.
std::string outer_path(const std::string& location, const NamedTensor& tensor) {
  if (location.empty() || location == "." || location == ".." ||
      location.find_first_of(std::string_view("/\0", 2)) != location.npos)
    tensor.refuse(
        fmt::format("lies in {}, which is not the name of a file beside the model; export the model into one "
                    "file (in PyTorch: external_data=False)",
                    quoted_text(location)));
  std::string path = parent_directory(tensor.file) + "/" + location;
  const EntryKind kind = Env::posix().entry(path).kind;
  if (kind == EntryKind::kNothing)
    tensor.refuse<MissingDataError>(
        fmt::format("lies in {}, which is not beside the model; copy both files", quoted_text(location)));
  if (kind != EntryKind::kFile)
    tensor.refuse(fmt::format("lies in {}, which is {}; put the file itself there", quoted_text(location),
                              kind == EntryKind::kLink ? "a link" : "no file"));
  return path;
}

/// Files beside the .onnx, by location: where each begins in the numbers, and its bytes. It is read once, whole. So its
/// size bounds what is allocated, however often tensors name it.
using OuterFiles = std::map<std::string, std::pair<std::size_t, std::size_t>>;

/// The begin of the range in `numbers`, to which its file is appended if it was not yet.
std::size_t find_outer(const OuterRange& range, const NamedTensor& tensor, OuterFiles& read,
                       std::vector<std::byte>& numbers) {
  auto known = read.find(range.location);
  if (known == read.end()) {
    const std::string path = outer_path(range.location, tensor);
    range.require_inside(Env::posix().size(path), tensor);
    const std::vector<std::byte> content = Env::posix().read(path);
    known = read.emplace(range.location, std::pair(numbers.size(), content.size())).first;
    numbers.insert(numbers.end(), content.begin(), content.end());
  }
  const auto& [begin, size] = known->second;
  range.require_inside(size, tensor);
  return begin + range.offset;
}

/// Finds or appends the numbers of a tensor; not those of fp64. False: they are not as many as its shape says.
bool place_numbers(const NamedTensor& tensor, SafetensorsEntry& entry, OuterFiles& outer,
                   std::vector<std::byte>& numbers) {
  const auto bytes = safetensors_tensor_bytes(entry.dtype, entry.shape);
  entry.begin = entry.end = numbers.size();
  if (!bytes) return false;
  if (entry.dtype == "F64") return true;
  if (tensor.proto.data_location() == onnx::TensorProto::EXTERNAL) {
    const OuterRange range = outer_range(tensor, *bytes);
    if (range.length != bytes) return false;
    entry.begin = find_outer(range, tensor, outer, numbers);
    entry.end = entry.begin + *bytes;
    return true;
  }
  append_inner(tensor, numbers);
  entry.end = numbers.size();
  return entry.end - entry.begin == bytes;
}

}  // namespace

SafetensorsFile read_onnx(std::vector<std::byte> bytes, const std::string& file,
                          std::map<std::string, std::string>* metadata) {
  onnx::ModelProto model;
  if (bytes.size() > INT_MAX || !model.ParseFromArray(bytes.data(), static_cast<int>(bytes.size())) ||
      !model.has_graph())
    throw DataError(fmt::format("{}: is not an ONNX model, or one that is cut off; export it again", file));
  if (metadata != nullptr)
    for (const onnx::StringStringEntryProto& entry : model.metadata_props())
      (*metadata)[entry.key()] = entry.value();
  std::vector<std::byte>& numbers = bytes;
  numbers.clear();
  std::vector<SafetensorsEntry> entries;
  std::set<std::string> names;
  OuterFiles outer;
  for (const onnx::TensorProto& proto : model.graph().initializer()) {
    SafetensorsEntry entry{proto.name(), dtype_of(proto), {}, 0, 0};
    const bool has_shape = proto.dims_size() > 0 && proto.dims_size() <= kMostDimensions;
    if (entry.dtype.empty() || !has_shape) continue;  // no weights
    const NamedTensor tensor{file, proto};
    entry.shape.assign(proto.dims().begin(), proto.dims().end());
    if (!place_numbers(tensor, entry, outer, numbers))
      tensor.refuse("has not the bytes that its shape takes; the file is damaged");
    if (!names.insert(entry.name).second) tensor.refuse("is there twice; the file is damaged");
    entries.push_back(std::move(entry));
  }
  return SafetensorsFile::of_entries(std::move(entries), std::move(bytes), 0, file);
}

}  // namespace lockstep
