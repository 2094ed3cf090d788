// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Every field of a set, written and read in one order.
#include "data/shared_set.hpp"

#include "common/error.hpp"

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

namespace lockstep {
namespace {

/// Turns fields into bytes, on their way out.
class SetWriter {
 public:
  /// The head, and the arrays where they lie.
  std::vector<std::span<const std::byte>> parts() {
    const std::uint64_t size = head_.size();
    std::memcpy(head_.data(), &size, sizeof(size));
    std::vector<std::span<const std::byte>> parts = {head_};
    parts.insert(parts.end(), arrays_.begin(), arrays_.end());
    return parts;
  }

  template <typename T>
  void numbers(T* from, std::size_t count) {
    const auto bytes = std::as_bytes(std::span(from, count));
    head_.insert(head_.end(), bytes.begin(), bytes.end());
  }
  /// How many a container has.
  template <typename Container>
  void length(Container& of) {
    const std::uint64_t size = of.size();
    numbers(&size, 1);
  }
  template <typename T>
  void array(AlignedBuffer<T>& buffer) {
    length(buffer);
    if (buffer.size() > 0) arrays_.push_back(std::as_bytes(buffer.span()));
  }

 private:
  std::vector<std::byte> head_ = std::vector<std::byte>(sizeof(std::uint64_t));  ///< its size comes first
  std::vector<std::span<const std::byte>> arrays_;
};

/// And on their way in.
class SetReader {
 public:
  explicit SetReader(const std::shared_ptr<MemoryFile>& memory) : memory_(memory), head_(memory->bytes()) {
    std::uint64_t size = 0;
    numbers(&size, 1);
    LOCKSTEP_CHECK(size >= sizeof(size) && size <= memory_->bytes().size());
    head_ = head_.first(size - sizeof(size));
    next_array_ = size;
  }

  template <typename T>
  void numbers(T* to, std::size_t count) {
    LOCKSTEP_CHECK(count <= head_.size() / sizeof(T));
    if (count == 0) return;
    std::memcpy(to, head_.data(), count * sizeof(T));
    head_ = head_.subspan(count * sizeof(T));
  }
  template <typename Container>
  void length(Container& of) {
    std::uint64_t size = 0;
    numbers(&size, 1);
    LOCKSTEP_CHECK(size <= head_.size());  // each has a byte at least
    of.resize(size);
  }
  template <typename T>
  void array(AlignedBuffer<T>& buffer) {
    std::uint64_t size = 0;
    numbers(&size, 1);
    buffer = {};
    if (size == 0) return;
    const std::size_t first = MemoryFile::next_part(next_array_), all = memory_->bytes().size();
    LOCKSTEP_CHECK(first <= all && size <= (all - first) / sizeof(T));
    buffer = AlignedBuffer<T>(reinterpret_cast<T*>(memory_->bytes().data() + first), size, memory_);
    next_array_ = first + size * sizeof(T);
  }

 private:
  std::shared_ptr<MemoryFile> memory_;
  std::span<const std::byte> head_;  ///< the part that is left
  std::size_t next_array_ = 0;
};

/// Hands every field of a set to a SetWriter or a SetReader. With a new field of a set this does not compile until it
/// is in here.
template <typename Fields>
class SetFields {
 public:
  explicit SetFields(Fields& fields) : fields_(fields) {}

  void take(TrainTestData& data) {
    auto& [train, test, validation, has_half, files, left_out, class_names, fit, normalisation, directory,
           origin, columns, remarks] = data;
    take_all(train, test, validation, has_half, files, left_out, class_names, fit, normalisation, directory,
             origin, columns, remarks);
  }

 private:
  template <typename... Parts>
  void take_all(Parts&... parts) {
    (take(parts), ...);
  }
  void take(Dataset& half) {
    auto& [name, shape, classes, labels, label_sets, places, images, store, picture_names, features, rows,
           of_rows, scales, quick, file_fingerprint] = half;
    LOCKSTEP_CHECK(store == nullptr && rows == nullptr);
    take_all(name, shape, classes, labels, label_sets, places, picture_names, of_rows, scales.scale,
             scales.shift, quick, file_fingerprint);
    fields_.array(images);
    fields_.array(features);
  }
  void take(Normalisation& by) { take_all(by.mean, by.std); }
  void take(Fingerprint& of) { take_all(of.samples, of.labels); }
  void take(WholeHalves& files) {
    take_all(files.fingerprints.train, files.fingerprints.test, files.fingerprints.validation, files.train,
             files.test);
  }
  void take(std::string& text) {
    fields_.length(text);
    fields_.numbers(text.data(), text.size());
  }
  template <typename T>
  void take(std::vector<T>& values) {
    fields_.length(values);
    if constexpr (std::is_trivially_copyable_v<T>)
      fields_.numbers(values.data(), values.size());
    else
      for (T& value : values) take(value);
  }
  template <typename T>
  void take(std::optional<T>& value) {
    bool has_value = value.has_value();
    take(has_value);
    if (!has_value) return;
    if (!value) value.emplace();
    take(*value);
  }
  template <typename T>
  requires std::is_trivially_copyable_v<T>
  void take(T& value) { fields_.numbers(&value, 1); }

  Fields& fields_;
};

}  // namespace

std::shared_ptr<MemoryFile> move_to_memory_file(TrainTestData& data) {
  for (const Dataset* half : {&data.train, &data.test, &data.validation})
    if (half->stays_on_disk()) return nullptr;
  SetWriter writer;
  SetFields(writer).take(data);
  auto memory = MemoryFile::of_parts(writer.parts());
  if (memory != nullptr) data = set_in(memory);
  return memory;
}

TrainTestData set_in(const std::shared_ptr<MemoryFile>& memory) {
  SetReader reader(memory);
  TrainTestData data;
  SetFields(reader).take(data);
  return data;
}

}  // namespace lockstep
