// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Headers and elements of numpy's arrays, and tables of them.
#include "common/buffers.hpp"
#include "common/env.hpp"
#include "common/error.hpp"
#include "common/printable.hpp"
#include "common/text_layout.hpp"
#include "data/tables/readers.hpp"
#include "data/tables/table.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>
#include <cstring>
#include <utility>

namespace lockstep {
namespace {

constexpr std::uint64_t kMostNpyHeaderBytes = std::uint64_t{64} << 10;
constexpr std::uint64_t kMostRowElements = std::uint64_t{1} << 24;  // models/layer_options.hpp
constexpr std::int64_t kMostRows = 0x7FFFFFFF;
constexpr std::size_t kMostDims = 4, kLongestText = 4096;

[[noreturn]] void refuse(const ByteSource& source, const std::string& cause) {
  throw DataError(fmt::format("{}: {}; save the array again with numpy.save", source.name(), cause));
}

std::vector<std::uint8_t> read_exactly(ByteSource& source, std::uint64_t count) {
  if (count > source.remaining_at_most())
    refuse(source, fmt::format("ends before byte {}", source.offset() + count));
  std::vector<std::uint8_t> bytes(count);
  if (source.read(bytes) != bytes.size()) refuse(source, fmt::format("ends at byte {}", source.offset()));
  return bytes;
}

/// The dictionary of a header, as Python's repr writes it.
class HeaderText {
 public:
  HeaderText(std::string_view text, const ByteSource& source) : text_(text), source_(source) {}

  void expect(char wanted) {
    if (!take(wanted)) fail();
  }
  bool take(char wanted) {
    skip_spaces();
    if (!text_.starts_with(wanted)) return false;
    text_.remove_prefix(1);
    return true;
  }
  std::string_view quoted() {
    skip_spaces();
    const char quote = text_.empty() ? '\0' : text_.front();
    const auto end = quote == '\'' || quote == '"' ? text_.find(quote, 1) : text_.npos;
    if (end == text_.npos) fail();
    return taken(end + 1).substr(1, end - 1);
  }
  bool truth() {
    skip_spaces();
    if (text_.starts_with("True")) return !taken(4).empty();
    if (text_.starts_with("False")) return taken(5).empty();
    fail();
  }
  std::vector<std::int64_t> numbers() {
    std::vector<std::int64_t> found;
    expect('(');
    while (!take(')')) {
      skip_spaces();
      std::int64_t number = -1;
      const auto [end, error] = std::from_chars(text_.data(), text_.data() + text_.size(), number);
      if (error != std::errc() || number < 0 || found.size() == kMostDims) fail();
      taken(static_cast<std::size_t>(end - text_.data()));
      found.push_back(number);
      if (!take(',')) {
        expect(')');
        break;
      }
    }
    return found;
  }
  void expect_end() {
    skip_spaces();
    if (!text_.empty()) fail();
  }
  [[noreturn]] void fail() const {
    refuse(source_,
           fmt::format("its header is not that of an array of numbers with 1 to {} dimensions, at '{}'",
                       kMostDims, printable_line(text_.substr(0, 40))));
  }

 private:
  std::string_view taken(std::size_t count) {
    const auto part = text_.substr(0, count);
    text_.remove_prefix(count);
    return part;
  }
  void skip_spaces() {
    const auto first = text_.find_first_not_of(" \t\n");
    text_.remove_prefix(std::min(first, text_.size()));
  }

  std::string_view text_;
  const ByteSource& source_;
};

void read_element_type(std::string_view descr, const ByteSource& source, NpyHeader& header) {
  const auto fail = [&] {
    refuse(
        source,
        fmt::format("elements of type '{}' are not read here, but float32, float64, whole numbers of 8 to 64 "
                    "bits, bool and text, little-endian: array.astype(\"<f4\")",
                    printable_line(descr)));
  };
  const auto number = parse_whole<std::size_t>(descr.substr(std::min<std::size_t>(2, descr.size())));
  if (!number) fail();
  const std::size_t item = *number;
  header.kind = descr[1];
  header.item = header.kind == 'U' ? 4 * std::min(item, kLongestText) : item;
  const bool is_number =
      (header.kind == 'f' && (item == 4 || item == 8)) || (header.kind == 'b' && item == 1) ||
      ((header.kind == 'i' || header.kind == 'u') && std::has_single_bit(item) && item <= 8);
  if (!(is_number || (header.is_text() && item >= 1 && item <= kLongestText))) fail();
  if (descr[0] != '<' && descr[0] != '|' && !(descr[0] == '=') && header.item > 1) fail();
}

void check_dims(const NpyHeader& header, const ByteSource& source) {
  if (header.dims.empty() || std::ranges::find(header.dims, 0) != header.dims.end())
    refuse(source, fmt::format("an array of shape ({}) has no rows", fmt::join(header.dims, ", ")));
  const std::uint64_t bytes =
      checked_product(header.dims.front(), header.row_elements(), static_cast<std::uint64_t>(header.item));
  if (header.row_elements() > kMostRowElements || header.dims.front() > kMostRows)
    refuse(source, fmt::format("{} rows of {} numbers are more than {} and {}", header.dims.front(),
                               header.row_elements(), kMostRows, kMostRowElements));
  if (bytes != source.remaining_at_most())
    refuse(source, fmt::format("its header promises {} {}, and {} follow it", bytes, plural(bytes, "byte"),
                               source.remaining_at_most()));
}

/// Reads and checks it, and leaves the source where the elements begin. Nothing is allocated on its word: at most as
/// many bytes as the source has are promised.
/// @throws DataError  naming offset and cause: no such array, an element type or order that is not read here, sizes
///                    that the file cannot hold
NpyHeader read_npy_header(ByteSource& source) {
  constexpr std::string_view kMagic = "\x93NUMPY";
  const auto head = read_exactly(source, 8);
  if (!as_text(head).starts_with(kMagic) || head[6] < 1 || head[6] > 3)
    refuse(source, "is not a NumPy array");
  const auto size = read_exactly(source, head[6] == 1 ? 2 : 4);
  const std::uint64_t length = little_endian(size, 0, size.size());
  if (length > kMostNpyHeaderBytes) refuse(source, fmt::format("a header of {} bytes", length));
  const auto text = read_exactly(source, length);
  HeaderText dictionary(as_text(text), source);
  NpyHeader header;
  bool has_type = false;
  dictionary.expect('{');
  while (!dictionary.take('}')) {
    const std::string_view key = dictionary.quoted();
    dictionary.expect(':');
    if (key == "descr") {
      read_element_type(dictionary.quoted(), source, header);
      has_type = true;
    } else if (key == "fortran_order") {
      if (dictionary.truth()) refuse(source, "its order is Fortran's: numpy.ascontiguousarray(array)");
    } else if (key == "shape") {
      header.dims = dictionary.numbers();
    } else {
      dictionary.fail();
    }
    dictionary.take(',');
  }
  dictionary.expect_end();
  if (!has_type) dictionary.fail();
  check_dims(header, source);
  return header;
}

// Elements.

template <typename T>
T element_at(const std::uint8_t* bytes) {
  static_assert(std::endian::native == std::endian::little);
  T value;
  std::memcpy(&value, bytes, sizeof value);
  return value;
}

/// Calls take(value) with the element in its type. @returns what it returns; for text Result()
template <typename Result, typename Take>
Result with_element(const NpyHeader& header, const std::uint8_t* bytes, const Take& take) {
  switch (header.kind) {
    case 'f':
      return header.item == 4 ? take(element_at<float>(bytes)) : take(element_at<double>(bytes));
    case 'i':
      if (header.item == 1) return take(element_at<std::int8_t>(bytes));
      if (header.item == 2) return take(element_at<std::int16_t>(bytes));
      return header.item == 4 ? take(element_at<std::int32_t>(bytes)) : take(element_at<std::int64_t>(bytes));
    case 'u':
      if (header.item == 2) return take(element_at<std::uint16_t>(bytes));
      if (header.item == 4) return take(element_at<std::uint32_t>(bytes));
      return header.item == 8 ? take(element_at<std::uint64_t>(bytes))
                              : take(element_at<std::uint8_t>(bytes));
    case 'b':
      return take(static_cast<std::uint8_t>(*bytes != 0));
    default:
      return Result();
  }
}

void append_utf8(std::string& text, std::uint32_t c) {
  const auto add = [&](std::uint32_t byte) { text.push_back(static_cast<char>(byte)); };
  if (c < 0x80) return add(c);
  // Bytes after the first, in which a bit stands for each.
  const int more = c < 0x800 ? 1 : c < 0x10000 ? 2 : 3;
  add(0xFF80U >> more | (c >> 6 * more & 0x3FU >> more));
  for (int i = more; i-- > 0;) add(0x80 | (c >> 6 * i & 0x3F));
}

/// Up to the first NUL.
std::string text_of(const NpyHeader& header, const std::uint8_t* bytes) {
  std::string text;
  for (std::size_t i = 0; i < header.item; i += header.kind == 'U' ? 4 : 1) {
    const std::uint32_t c = header.kind == 'U' ? element_at<std::uint32_t>(bytes + i) : bytes[i];
    if (c == 0) break;
    if (header.kind == 'U')
      append_utf8(text, c);
    else
      text.push_back(static_cast<char>(c));
  }
  return text;
}

}  // namespace

std::uint64_t NpyHeader::row_elements() const {
  std::uint64_t product = 1;
  for (std::size_t i = 1; i < dims.size(); ++i) product = checked_product(product, dims[i]);
  return product;
}

ImageShape NpyHeader::row_shape() const {
  const auto side = [&](std::size_t i) { return static_cast<int>(dims[i]); };
  if (dims.size() == 4) return {side(1), side(2), side(3)};
  if (dims.size() == 3) return {1, side(1), side(2)};
  return {dims.size() == 2 ? side(1) : 1, 1, 1};
}

// Rows.

NpyRows::NpyRows(std::unique_ptr<ByteSource> source)
    : source_(std::move(source)), header_(read_npy_header(*source_)), left_(size()) {}

std::span<const std::uint8_t> NpyRows::next_bytes() {
  constexpr std::uint64_t kPiece = std::uint64_t{256} << 10;
  const std::uint64_t each = header_.row_elements() * header_.item;
  if (at_ == bytes_.size()) {
    const std::uint64_t rows = std::clamp<std::uint64_t>(kPiece / each, 1, static_cast<std::uint64_t>(left_));
    bytes_ = read_exactly(*source_, rows * each);
    at_ = 0;
  }
  --left_;
  return std::span(bytes_).subspan(std::exchange(at_, at_ + each), each);
}

std::int64_t NpyRows::next(std::span<float> row) {
  if (header_.is_text()) refuse(*source_, "holds text, and no numbers");
  const auto bytes = next_bytes();
  std::int64_t bad = -1;
  for (std::size_t i = 0; i < row.size(); ++i) {
    row[i] = with_element<float>(header_, bytes.data() + i * header_.item,
                                 [](auto value) { return static_cast<float>(value); });
    if (!std::isfinite(row[i]) && bad < 0) bad = static_cast<std::int64_t>(i);
  }
  return bad;
}

bool NpyRows::next_label(std::string& label) {
  const auto bytes = next_bytes();
  label = text_of(header_, bytes.data());
  if (header_.is_text()) return !label.empty();
  return with_element<bool>(header_, bytes.data(), [&](auto value) {
    constexpr double kMostWhole = 9007199254740992;  // 2^53
    if constexpr (std::is_floating_point_v<decltype(value)>) {
      const double number = value;
      if (!(std::abs(number) <= kMostWhole) || number != std::floor(number)) return false;
      label = fmt::format("{}", static_cast<std::int64_t>(number));
    } else {
      label = fmt::format("{}", value);
    }
    return true;
  });
}

// Tables of arrays.

namespace {

class ArrayTable final : public Table {
 public:
  ArrayTable(std::unique_ptr<NpyRows> features, std::unique_ptr<NpyRows> labels)
      : features_(std::move(features)), labels_(std::move(labels)) {
    if (features_->header().is_text()) refuse(features_->source(), "holds text, and no numbers");
    shape_ = features_->header().row_shape();
    left_ = features_->size();
    if (labels_ == nullptr) return;
    if (labels_->header().row_elements() != 1) refuse(labels_->source(), "labels have one dimension");
    if (labels_->size() != left_)
      refuse(labels_->source(),
             fmt::format("{} for {}", counted(labels_->size(), "label"), counted(left_, "row")));
  }

  bool next(TableRow& row) override {
    if (left_ == 0) return false;
    row.place = fmt::format("row {}", features_->size() - left_--);
    row.trouble.clear();
    row.features.resize(static_cast<std::size_t>(shape_.features()));
    if (const std::int64_t bad = features_->next(row.features); bad >= 0)
      row.trouble = fmt::format("value {} is {}, no number that fp32 has", bad, at(row.features, bad));
    if (labels_ != nullptr && !labels_->next_label(row.label) && row.trouble.empty())
      row.trouble = "its label is neither a whole number nor a name";
    return true;
  }

 private:
  std::unique_ptr<NpyRows> features_, labels_;
  std::int64_t left_ = 0;
};

/// The array that was asked for, or the first of these that there is.
std::unique_ptr<NpyRows> find_array(const NpzArchive& archive, const std::string& file,
                                    const std::string& asked, const std::vector<std::string>& usual) {
  for (const std::string& name : asked.empty() ? usual : std::vector<std::string>{asked})
    if (archive.has(name)) return std::make_unique<NpyRows>(archive.open(name));
  throw DataError(
      fmt::format("{}: has no array {}, but {}; numpy.savez(FILE, x=features, y=labels) names them so", file,
                  asked.empty() ? fmt::format("{}", fmt::join(usual, " or ")) : printable_line(asked),
                  printable_line(fmt::format("{}", fmt::join(archive.names(), ", ")))));
}

}  // namespace

std::unique_ptr<Table> open_array_table(const TableOptions& options) {
  if (!options.drop.empty() || !options.separator.empty() || options.header != TableHeader::kAuto ||
      !options.one_hot.empty() || options.missing != MissingCells::kRefused)
    throw UsageError(
        fmt::format("{}: --drop, --separator, --header, --missing and --one-hot are for text", options.from));
  std::unique_ptr<NpyRows> labels;
  if (in_small_letters(std::filesystem::path(options.from).extension().string()) == ".npz") {
    const NpzArchive archive(options.from);
    if (options.has_labels)
      labels = find_array(archive, options.from, options.label, {"y", "labels", "label"});
    return std::make_unique<ArrayTable>(find_array(archive, options.from, "", {"x", "X", "features", "data"}),
                                        std::move(labels));
  }
  if (options.has_labels && options.label.empty())
    throw UsageError(
        fmt::format("{}: holds the features; say where the labels are: --label LABELS.npy", options.from));
  if (options.has_labels) labels = std::make_unique<NpyRows>(std::make_unique<FileSource>(options.label));
  return std::make_unique<ArrayTable>(std::make_unique<NpyRows>(std::make_unique<FileSource>(options.from)),
                                      std::move(labels));
}

}  // namespace lockstep
