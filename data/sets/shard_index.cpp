// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// shards.index to numbers and back: what is read is bounded, and every number is looked at before it is used.
#include "common/error.hpp"
#include "common/json_text.hpp"
#include "common/text_layout.hpp"
#include "data/sets/names.hpp"
#include "data/sets/set_formats.hpp"
#include "data/sets/shards.hpp"
#include "data/sets/table_columns.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <bit>
#include <limits>
#include <unordered_set>

namespace lockstep {
namespace {

/// Each set has the oldest one that knows what it holds. Version 1: bytes and a label each; 2: fp32 features and a
/// label each; 3: all.
constexpr int kVersion = 3, kVersionOfBytes = 1, kVersionOfFp32 = 2;
constexpr const char* kFp32 = "float32";
constexpr std::int64_t kMostSamples = std::numeric_limits<std::int32_t>::max();
constexpr std::int64_t kMostLabels = kMostSamples;             // all samples of a half together
constexpr std::int64_t kMostFeatures = std::int64_t{1} << 24;  // models/layer_options.hpp
constexpr std::uint64_t kLeastBlock = 512, kMostBlock = std::uint64_t{64} << 20;
constexpr std::uint64_t kMostShards = 100'000;  // five digits

/// The head's JSON, with errors that name file and key.
class HeadReader {
 public:
  HeadReader(const nlohmann::json& json, const std::string& file, std::string path = "")
      : json_(json), file_(file), path_(std::move(path)) {
    if (!json.is_object()) fail("", "is not a JSON object");
  }

  [[noreturn]] void fail(const std::string& key, const std::string& cause) const {
    throw DataError(
        fmt::format("{}: {}{} {}; make the set again, or copy it again", file_, path_, key, cause));
  }
  bool has(const std::string& key) const { return json_.contains(key); }
  const nlohmann::json& at(const std::string& key) const {
    const auto found = json_.find(key);
    if (found == json_.end()) fail(key, "is missing");
    return *found;
  }
  std::int64_t number(const std::string& key, std::int64_t least, std::int64_t most) const {
    const nlohmann::json& value = at(key);
    const bool fits = value.is_number_integer() &&
                      (!value.is_number_unsigned() || value.get<std::uint64_t>() <= std::uint64_t{INT64_MAX});
    if (!fits || value.get<std::int64_t>() < least || value.get<std::int64_t>() > most)
      fail(key, fmt::format("is not a whole number in {}..{}", least, most));
    return value.get<std::int64_t>();
  }
  Sha256Digest digest(const std::string& key) const {
    const nlohmann::json& value = at(key);
    const Sha256Digest digest = value.is_string() ? digest_of_hex(value.get<std::string>()) : Sha256Digest{};
    if (!value.is_string() || hex(digest) != value.get<std::string>()) fail(key, "is not a SHA-256");
    return digest;
  }
  std::vector<std::uint64_t> sums(const std::string& key, int channels) const {
    const nlohmann::json& value = at(key);
    const auto is_sum = [](const nlohmann::json& sum) { return sum.is_number_unsigned(); };
    if (!value.is_array() || value.size() != static_cast<std::size_t>(channels) ||
        !std::ranges::all_of(value, is_sum))
      fail(key, "is not a sum for each channel");
    return value.get<std::vector<std::uint64_t>>();
  }
  HeadReader inner(const std::string& key) const { return {at(key), file_, key + "."}; }

 private:
  const nlohmann::json& json_;
  const std::string& file_;
  std::string path_;
};

/// The SHA-256 in the second line is of the first. @returns the first
std::string_view checked_head(std::string_view text, const std::string& file) {
  const auto end = text.find('\n');
  const std::string_view head = text.substr(0, end);
  const std::string_view digest = end == text.npos ? "" : text.substr(end + 1);
  if (digest != hex(sha256(std::as_bytes(std::span(head)))) + "\n")
    throw DataError(
        fmt::format("{}: its second line is not the SHA-256 of the first: damaged, or truncated; copy the "
                    "set again, or make it again",
                    file));
  return head;
}

void check_sizes(const ShardSizes& sizes, const HeadReader& head) {
  if (!std::has_single_bit(sizes.block_bytes)) head.fail("block_bytes", "is not a power of two");
  if (sizes.shard_bytes % sizes.block_bytes != 0) head.fail("shard_bytes", "is not a number of whole blocks");
}

ShardHalf read_half(const HeadReader& head, const ShardIndex& index) {
  ShardHalf half{.samples = head.number("samples", 1, kMostSamples),
                 .label_count = index.has_label_sets ? head.number("label_count", 0, kMostLabels) : 0,
                 .labels = head.digest("labels_sha256"),
                 .blocks = head.digest("blocks_sha256")};
  if (!index.is_fp32) {
    half.sums = {.values = head.sums("values", index.shape.channels),
                 .squares = head.sums("squares", index.shape.channels)};
    if (!are_possible(half.sums, checked_product(half.samples, index.shape.height, index.shape.width)))
      head.fail("squares", "and values are not sums of such pixels");
  }
  if (index.bytes_of(half) / index.sizes.shard_bytes >= kMostShards)
    head.fail("samples", fmt::format("is so many that there are more than {} files", kMostShards));
  return half;
}

std::vector<std::string> read_class_names(const HeadReader& head, std::int64_t classes) {
  const nlohmann::json& list = head.at("class_names");
  const auto is_name = [](const nlohmann::json& name) {
    return name.is_string() && trouble_with_class_name(name.get_ref<const std::string&>()) == nullptr;
  };
  if (!list.is_array() || !std::ranges::all_of(list, is_name))
    head.fail("class_names", "is not a list of printable names");
  auto names = list.get<std::vector<std::string>>();
  if (!names.empty() && std::ssize(names) != classes)
    head.fail("class_names", fmt::format("has {}, and there are {}", counted(names.size(), "name"),
                                         counted(classes, "class")));
  if (std::unordered_set<std::string_view>(names.begin(), names.end()).size() != names.size())
    head.fail("class_names", "has a name twice");
  return names;
}

std::string read_columns(const HeadReader& head, const ShardIndex& index) {
  if (!index.is_fp32 || !head.has("columns")) return "";
  const TableColumns columns = parse_table_columns(head.at("columns").dump(), "columns");
  if (columns.numbers() != static_cast<std::size_t>(index.shape.features()))
    head.fail("columns", fmt::format("are of {}, and a sample has {}", counted(columns.numbers(), "number"),
                                     index.shape.features()));
  return to_text(columns);
}

ImageShape read_shape(const HeadReader& head) {
  const auto side = [&](const char* key) { return static_cast<int>(head.number(key, 1, kMostFeatures)); };
  const ImageShape shape{side("channels"), side("height"), side("width")};
  if (checked_product(shape.channels, shape.height, shape.width) > std::uint64_t{kMostFeatures})
    head.fail("channels", fmt::format("times height and width is above {}", kMostFeatures));
  return shape;
}

nlohmann::ordered_json json_of(const ShardHalf& half, bool has_label_sets) {
  nlohmann::ordered_json json = {{"samples", half.samples}};
  if (has_label_sets) json["label_count"] = half.label_count;
  json.update({{"labels_sha256", hex(half.labels)}, {"blocks_sha256", hex(half.blocks)}});
  if (!half.sums.values.empty()) json.update({{"values", half.sums.values}, {"squares", half.sums.squares}});
  return json;
}

bool read_is_fp32(const HeadReader& head, std::int64_t version) {
  if (version == kVersionOfBytes || (version != kVersionOfFp32 && !head.has("sample"))) return false;
  if (head.at("sample") != kFp32) head.fail("sample", fmt::format("is not \"{}\"", kFp32));
  return true;
}

bool read_has_label_sets(const HeadReader& head, std::int64_t version) {
  if (version < kVersion || !head.has("several_labels")) return false;
  if (head.at("several_labels") != true) head.fail("several_labels", "is not true");
  return true;
}

int version_of(const ShardIndex& index) {
  if (index.has_label_sets || index.validation.samples > 0) return kVersion;
  return index.is_fp32 ? kVersionOfFp32 : kVersionOfBytes;
}

bool ends_like_a_shard(std::string_view name) {
  constexpr std::string_view kEnding = ".shard";
  if (!name.ends_with(kEnding)) return false;
  name.remove_suffix(kEnding.size());
  return name.size() == 5 && name.find_first_not_of("0123456789") == name.npos;
}

}  // namespace

ShardIndex parse_shard_index(std::string_view text, const std::string& file) {
  if (text.size() > kMostShardIndexBytes)
    throw DataError(fmt::format("{}: more than {} bytes; make the names of the classes shorter", file,
                                kMostShardIndexBytes));
  const nlohmann::json json = parse_json_or_discard(checked_head(text, file));
  const HeadReader head(json, file);
  const auto version = head.number("lockstep_shards", 1, INT64_MAX);
  if (version > kVersion)
    throw DataError(fmt::format("{}: version {} of the format, and this program reads {}; take a newer one",
                                file, version, kVersion));
  ShardIndex index;
  index.is_fp32 = read_is_fp32(head, version);
  index.shape = read_shape(head);
  index.has_label_sets = read_has_label_sets(head, version);
  index.classes =
      head.number("classes", 1, index.has_label_sets ? kMostClassesOfLabelSets : kMostShardClasses);
  index.class_names = read_class_names(head, index.classes);
  index.columns = read_columns(head, index);
  index.sizes.block_bytes = static_cast<std::uint64_t>(head.number("block_bytes", kLeastBlock, kMostBlock));
  index.sizes.shard_bytes = static_cast<std::uint64_t>(head.number("shard_bytes", kLeastBlock, INT64_MAX));
  check_sizes(index.sizes, head);
  index.train = read_half(head.inner("train"), index);
  index.test = read_half(head.inner("test"), index);
  if (version == kVersion && head.has("validation"))
    index.validation = read_half(head.inner("validation"), index);
  return index;
}

std::string to_text(const ShardIndex& index) {
  nlohmann::ordered_json json = {{"lockstep_shards", version_of(index)}};
  if (index.is_fp32) json["sample"] = kFp32;
  if (index.has_label_sets) json["several_labels"] = true;
  json.update({{"channels", index.shape.channels},
               {"height", index.shape.height},
               {"width", index.shape.width},
               {"classes", index.classes},
               {"class_names", index.class_names},
               {"block_bytes", index.sizes.block_bytes},
               {"shard_bytes", index.sizes.shard_bytes},
               {"train", json_of(index.train, index.has_label_sets)},
               {"test", json_of(index.test, index.has_label_sets)}});
  if (!index.columns.empty()) json["columns"] = nlohmann::ordered_json::parse(index.columns);
  if (index.validation.samples > 0) json["validation"] = json_of(index.validation, index.has_label_sets);
  const std::string head = json_text_in_ascii(json);
  return head + "\n" + hex(sha256(std::as_bytes(std::span(head)))) + "\n";
}

std::string shard_file(std::string_view half, std::uint64_t number) {
  return fmt::format("{}-{:05}.shard", half, number);
}

std::string shard_labels_file(std::string_view half) {
  return fmt::format("{}-labels.u32", half);
}

std::string shard_blocks_file(std::string_view half) {
  return fmt::format("{}-blocks.sha256", half);
}

bool is_name_in_shards(std::string_view name) {
  if (name == kShardIndexFile) return true;
  for (const SetHalf of : {SetHalf::kTrain, SetHalf::kTest, SetHalf::kValidation}) {
    const std::string_view half = name_of(of);
    if (name == shard_labels_file(half) || name == shard_blocks_file(half) || name == sample_names_file(half))
      return true;
    if (name.starts_with(half) && name.size() > half.size() && name[half.size()] == '-' &&
        ends_like_a_shard(name.substr(half.size() + 1)))
      return true;
  }
  return false;
}

}  // namespace lockstep
