// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Checks of a safetensors header that need no JSON: sizes, ranges, names.
#include "common/error.hpp"
#include "common/printable.hpp"
#include "common/safetensors.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>

namespace lockstep {

namespace {

/// Bytes of one element; 0 for a dtype that does not exist.
std::size_t dtype_bytes(std::string_view dtype) {
  static const std::map<std::size_t, std::vector<std::string_view>> dtypes = {
      {1, {"BOOL", "U8", "I8", "F8_E5M2", "F8_E4M3", "F8_E8M0"}},
      {2, {"I16", "U16", "F16", "BF16"}},
      {4, {"I32", "U32", "F32"}},
      {8, {"F64", "I64", "U64", "C64"}}};
  for (const auto& [bytes, names] : dtypes)
    if (std::ranges::find(names, dtype) != names.end()) return bytes;
  return 0;
}

void check_entry(const SafetensorsEntry& entry, const std::string& file) {
  if (dtype_bytes(entry.dtype) == 0)
    throw DataError(fmt::format("{}: tensor {}: unknown dtype {}", file, quoted_text(entry.name),
                                quoted_text(entry.dtype)));
  const auto bytes = safetensors_tensor_bytes(entry.dtype, entry.shape);
  if (!bytes)
    throw DataError(
        fmt::format("{}: tensor {}: its shape is too large for any file", file, quoted_text(entry.name)));
  if (entry.end < entry.begin || entry.end - entry.begin != bytes)
    throw DataError(fmt::format("{}: tensor {}: data_offsets [{}, {}] do not hold the {} bytes of its shape",
                                file, quoted_text(entry.name), entry.begin, entry.end, *bytes));
}

/// The ranges, in order, must cover the data with neither overlap nor hole.
void check_tiling(const std::vector<SafetensorsEntry>& entries, std::size_t data_bytes,
                  const std::string& file) {
  std::size_t position = 0;
  for (const SafetensorsEntry& entry : entries) {
    if (entry.begin != position)
      throw DataError(fmt::format("{}: tensor {}: starts at byte {} of the data where {} was expected: {}",
                                  file, quoted_text(entry.name), entry.begin, position,
                                  entry.begin < position ? "tensors overlap" : "there is a hole"));
    position = entry.end;
  }
  if (position != data_bytes)
    throw DataError(
        fmt::format("{}: tensors take {} bytes, the file holds {}: it is {}", file, position, data_bytes,
                    position > data_bytes ? "truncated" : "followed by bytes that belong to nothing"));
}

// The JSON text of a header as data, with the structure checked and nothing else.

using nlohmann::json;

/// Reads event by event and stops at the first thing that has no place in a header. So no hostile text is ever built up
/// in memory. Accepts {"name": {"dtype": S, "shape": [N...], "data_offsets": [N, N]}, ..., "__metadata__": {S: S}}.
class HeaderEvents final : public json::json_sax_t {
 public:
  explicit HeaderEvents(const std::string& file) : file_(file) {}

  std::vector<SafetensorsEntry> take() { return std::move(entries_); }

  bool start_object(std::size_t /*size*/) override {
    if (state_ == State::kStart) return go(State::kTop);
    if (state_ != State::kEntryStart) return wrong("an object");
    if (in_metadata_) return go(State::kMetadata);
    seen_ = 0;
    entries_.emplace_back().name = std::move(name_);
    return go(State::kFields);
  }

  bool key(string_t& text) override {
    switch (state_) {
      case State::kTop:
        name_ = text;
        in_metadata_ = text == "__metadata__";
        if (in_metadata_ && std::exchange(metadata_seen_, true)) return wrong("a second __metadata__");
        return go(State::kEntryStart);
      case State::kFields:
        return field(text);
      default:
        name_ = text;
        return go(State::kMetadataValue);
    }
  }

  bool string(string_t& text) override {
    if (state_ == State::kMetadataValue) {
      if (!metadata_keys_.insert(name_).second) return wrong("a second value for a key of __metadata__");
      return go(State::kMetadata);
    }
    if (state_ != State::kDtype) return wrong("a string");
    entries_.back().dtype = text.substr(0, 16);
    return go(State::kFields);
  }

  bool start_array(std::size_t /*size*/) override {
    if (state_ == State::kShapeStart) return go(State::kShape);
    if (state_ != State::kOffsetsStart) return wrong("an array");
    offsets_ = 0;
    return go(State::kOffsets);
  }

  bool number_unsigned(number_unsigned_t value) override {
    if (state_ != State::kShape && state_ != State::kOffsets) return wrong("a number");
    SafetensorsEntry& entry = entries_.back();  // both places are inside an entry
    if (state_ == State::kShape) {
      if (entry.shape.size() == kMaxSafetensorsRank) return wrong("more dimensions than any tensor has");
      entry.shape.push_back(value);
      return true;
    }
    if (offsets_ == 2) return wrong("a number");
    (offsets_ == 0 ? entry.begin : entry.end) = value;
    ++offsets_;
    return true;
  }

  bool end_array() override {
    if (state_ == State::kOffsets && offsets_ != 2) return wrong("data_offsets that are not two numbers");
    return go(State::kFields);
  }

  bool end_object() override {
    if (state_ == State::kFields && seen_ != kAllFields)
      return wrong("an entry without dtype, shape or data_offsets");
    return go(state_ == State::kTop ? State::kStart : State::kTop);
  }

  bool null() override { return wrong("null"); }
  bool boolean(bool /*value*/) override { return wrong("a boolean"); }
  bool number_integer(number_integer_t /*value*/) override { return wrong("a negative number"); }
  bool number_float(number_float_t /*value*/, const string_t& /*text*/) override {
    return wrong("a number that is not a 64-bit integer");
  }
  bool binary(binary_t& /*value*/) override { return wrong("binary data"); }

  bool parse_error(std::size_t position, const std::string& /*token*/,
                   const json::exception& /*why*/) override {
    throw DataError(
        fmt::format("{}: the header is not JSON at byte {}", file_, kSafetensorsPrefixBytes + position));
  }

 private:
  /// States of the reader: the event that may come. kEntryStart, kMetadataValue and k*Start wait for a key's value.
  enum class State {
    kStart,
    kTop,
    kEntryStart,
    kFields,
    kDtype,
    kShapeStart,
    kShape,
    kOffsetsStart,
    kOffsets,
    kMetadata,
    kMetadataValue
  };
  static constexpr unsigned kAllFields = 7;

  bool go(State state) {
    state_ = state;
    return true;
  }

  bool field(const std::string& text) {
    if (text == "dtype") return once(1, State::kDtype);
    if (text == "shape") return once(2, State::kShapeStart);
    if (text == "data_offsets") return once(4, State::kOffsetsStart);
    return wrong("an unknown field");
  }

  bool once(unsigned bit, State next) {
    if ((seen_ & bit) != 0) return wrong("a field that is there twice");
    seen_ |= bit;
    return go(next);
  }

  [[noreturn]] bool wrong(const char* what) const {
    const bool in_entry = !entries_.empty() && state_ != State::kTop && state_ != State::kEntryStart;
    const std::string& name = in_entry && !in_metadata_ ? entries_.back().name : name_;
    throw DataError(
        fmt::format("{}: the header holds {} at tensor {}, which has no place in a safetensors header", file_,
                    what, quoted_text(name)));
  }

  const std::string& file_;
  std::vector<SafetensorsEntry> entries_;
  std::set<std::string> metadata_keys_;
  State state_ = State::kStart;
  std::string name_;
  bool in_metadata_ = false, metadata_seen_ = false;
  unsigned seen_ = 0;  // bits of the fields of this entry
  int offsets_ = 0;
};

}  // namespace

std::optional<std::size_t> safetensors_tensor_bytes(std::string_view dtype,
                                                    const std::vector<std::size_t>& shape) {
  std::size_t bytes = dtype_bytes(dtype);
  if (bytes == 0) return std::nullopt;
  for (const std::size_t dimension : shape)
    if (__builtin_mul_overflow(bytes, dimension, &bytes)) return std::nullopt;
  return bytes;
}

std::vector<SafetensorsEntry> parse_safetensors_header(std::string_view text, std::size_t data_bytes,
                                                       const std::string& file) {
  HeaderEvents events(file);
  json::sax_parse(text.begin(), text.end(), &events);
  std::vector<SafetensorsEntry> entries = events.take();
  for (const SafetensorsEntry& entry : entries) check_entry(entry, file);
  std::ranges::sort(entries, {}, &SafetensorsEntry::name);
  const auto twin = std::ranges::adjacent_find(entries, {}, &SafetensorsEntry::name);
  if (twin != entries.end())
    throw DataError(fmt::format("{}: tensor {}: is there twice", file, quoted_text(twin->name)));
  std::ranges::sort(entries, {},
                    [](const auto& entry) { return std::tie(entry.begin, entry.end, entry.name); });
  check_tiling(entries, data_bytes, file);
  return entries;
}

}  // namespace lockstep
