// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// manifest.json: the list of its fields, used to write and to read it. What is added to CheckpointFacts is
/// added to facts_fields().
#include "common/digest.hpp"
#include "common/error.hpp"
#include "common/json_text.hpp"
#include "common/safetensors.hpp"
#include "kernels/numerics/sums.hpp"
#include "kernels/sum_cuts.hpp"
#include "models/network.hpp"
#include "trainer/checkpoint/checkpoint.hpp"
#include "trainer/checkpoint/json_fields.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <set>
#include <span>

namespace lockstep {
namespace {

using nlohmann::json;
using Json = nlohmann::ordered_json;

constexpr const char* kFormat = "lockstep checkpoint";
constexpr const char* kInRange = "a list of whole numbers in range";

/// @param unit  what is counted there
void position_field(auto&& archive, const char* key, const char* unit,
                    std::optional<CheckpointPosition>& position) {
  optional_field(archive, key, position, [unit](auto&& inner, CheckpointPosition& its) {
    inner(unit, its.count);
    inner("sha256", its.sha256);
    inner.require(is_digest(its.sha256), "sha256", "64 hexadecimal digits");
  });
}

void loss_units_field(auto&& archive, const char* key, WideSum& sum) {
  constexpr std::int64_t kLimb = std::int64_t{1} << kWideLimbBits;
  const auto is_limb = [](std::int64_t limb) { return limb >= -kLimb && limb < kLimb; };
  std::vector<std::int64_t> limbs(sum.limbs.begin(), sum.limbs.end());
  archive(key, limbs);
  archive.require(std::ranges::all_of(limbs, is_limb), key, kInRange);
  archive.require(limbs.size() == kWideLimbs, key, "a list of six numbers");
  std::ranges::copy(limbs, sum.limbs.begin());
}

/// Running totals over the lists of tensors.
struct TensorsSoFar {
  std::set<std::string> names;
  std::size_t bytes = 0;
};

/// Limits the sum of sizes to that of a file, and refuses a repeated name. Memory for all is allocated at
/// once.
void tensor_fields(auto&& archive, CheckpointParameter& tensor, TensorsSoFar& so_far) {
  archive("name", tensor.name);
  archive("shape", tensor.shape);
  const auto bytes = safetensors_tensor_bytes("F32", tensor.shape);
  archive.require(bytes && tensor.shape.size() <= kMaxSafetensorsRank, "shape", "one that fits into memory");
  archive.require(*bytes <= std::numeric_limits<std::size_t>::max() - so_far.bytes, "shape",
                  "one that fits into memory together with those before it");
  so_far.bytes += *bytes;
  archive.require(so_far.names.insert(tensor.name).second, "name", "another than those before it");
}

void accuracy_fields(auto&& archive, CheckpointFacts& facts) {
  optional_field(archive, "test_accuracy", facts.test_accuracy);
  if (facts.test_accuracy) {
    std::int64_t step = facts.step;
    archive("test_step", step);
    archive.require(step == facts.step, "test_step", "its own step");
  }
  const double accuracy = facts.test_accuracy.value_or(0);
  archive.require(accuracy >= 0 && accuracy <= 1, "test_accuracy", "a number from 0 to 1");
  optional_field(archive, "validation_accuracy", facts.validation_accuracy);
  const double validated = facts.validation_accuracy.value_or(0);
  archive.require(validated >= 0 && validated <= 1, "validation_accuracy", "a number from 0 to 1");
  optional_field(archive, "patience", facts.patience, [&](auto&& inner, CheckpointPatience& patience) {
    if (inner.has("best", patience.best >= 0)) inner("best", patience.best);
    inner("without_better", patience.without_better);
    inner("counted_from", patience.counted_from);
    inner.require(patience.best == -1 || (patience.best >= 0 && patience.best <= 1), "best",
                  "a number from 0 to 1");
    const bool of_this_run = patience.counted_from >= 0 && patience.counted_from <= facts.step;
    inner.require(of_this_run, "counted_from", "a step of this run");
    inner.require(patience.without_better >= 0 && patience.without_better <= facts.step, "without_better",
                  "a number of evaluations of this run");
  });
}

/// Sums over the epoch under archive, and units of the sums to come.
void sum_fields(auto&& archive, CheckpointFacts& facts) {
  archive("epoch_samples", facts.epoch_samples);
  archive("epoch_correct", facts.epoch_correct);
  archive("epoch_loss_sum", facts.epoch_loss_sum);
  constexpr double kAnyLossOfAnEpoch = 0x1p157;  // the largest float for 2^29 samples
  archive.require(std::abs(facts.epoch_loss_sum) < kAnyLossOfAnEpoch, "epoch_loss_sum", "a sum of losses");
  loss_units_field(archive, "epoch_loss_units", facts.epoch_loss_units);
  optional_field(archive, "unprinted_loss", facts.unprinted, [](auto&& inner, LossWindow& loss) {
    inner("steps", loss.steps);
    inner("samples", loss.samples);
    loss_units_field(inner, "units", loss.loss_units);
  });
  optional_field(archive, "unlogged_answers", facts.unlogged, [](auto&& inner, LossWindow& answers) {
    inner("steps", answers.steps);
    inner("samples", answers.samples);
    inner("correct", answers.correct);
    inner.require(answers.correct <= answers.samples, "correct", "a number of those samples");
  });
  archive.object("gradient_units", facts.gradient_units, [](auto&& inner, CheckpointUnits& units) {
    inner("exponents", units.exponents);
    inner("changed_at", units.changed_at);
    inner.require(std::ranges::all_of(units.exponents, is_exact_exponent), "exponents", kInRange);
  });
}

void facts_fields(auto&& archive, CheckpointFacts& facts) {
  archive("step", facts.step);
  archive("epoch", facts.epoch);
  archive("step_in_epoch", facts.step_in_epoch);
  archive("seed", facts.seed);
  sum_fields(archive, facts);
  archive.object("arithmetic", facts.arithmetic, [&](auto&& inner, CheckpointArithmetic& arithmetic) {
    inner("version", arithmetic.version);
    inner("since", arithmetic.since);
    inner.require(arithmetic.since >= 0 && arithmetic.since <= facts.step, "since", "a step of this run");
  });
  position_field(archive, "trail", "records", facts.trail);
  position_field(archive, "metrics", "lines", facts.metrics);
  optional_field(archive, "replayed", facts.replayed);
  archive.require(facts.replayed >= 0 && facts.replayed <= facts.step, "replayed", "a step of this run");
  accuracy_fields(archive, facts);
  archive("job", facts.job);
  archive("model", facts.model);
  archive("data", facts.data);
  archive("world", facts.world);
  archive("bucket_plan", facts.bucket_plan);
  optional_field(archive, "bucket_sizes", facts.bucket_sizes);
  TensorsSoFar so_far;
  const auto fields = [&](auto&& inner, CheckpointParameter& tensor) {
    tensor_fields(inner, tensor, so_far);
  };
  archive.list("parameters", "parameters", facts.parameters, fields);
  if (archive.has("kept", !facts.kept.empty())) archive.list("kept", "kept", facts.kept, fields);
  const std::size_t units = facts.gradient_units.exponents.size();
  archive.require(units == facts.parameters.size(), "gradient_units.exponents",
                  "a list of one number for each of the parameters");
}

// The files and their checksums.

/// Eight hexadecimal digits a block, one after another.
void crc32_field(auto&& archive, SectionRecord& section) {
  std::string text;
  for (const std::uint32_t crc : section.crc32s) text += fmt::format("{:08x}", crc);
  archive("crc32", text);
  archive.require(text.size() == 8 * checksum_blocks(section.end - section.begin), "crc32",
                  "eight digits for each block");
  archive.require(text.find_first_not_of("0123456789abcdef") == text.npos, "crc32", "hexadecimal");
  section.crc32s.assign(text.size() / 8, 0);
  for (std::size_t i = 0; i < section.crc32s.size(); ++i)
    std::from_chars(text.data() + 8 * i, text.data() + 8 * i + 8, section.crc32s[i], 16);
}

void file_fields(auto&& archive, FileRecord& file, const char* name) {
  archive("name", file.name);
  archive.require(file.name == name, "name", name);
  archive("bytes", file.bytes);
  archive("sha256", file.sha256);
  std::size_t position = 0;
  archive.list("sections", fmt::format("{}.sections", name), file.sections,
               [&](auto&& inner, SectionRecord& s) {
                 inner("name", s.name);
                 inner("begin", s.begin);
                 inner("end", s.end);
                 inner.require(s.begin == position && s.end >= s.begin, "end", "where sections meet");
                 crc32_field(inner, s);
                 position = s.end;
               });
  archive.require(position == file.bytes, "sections", "as long as the file");
}

void manifest_fields(auto&& archive, Manifest& manifest) {
  std::uint64_t block_bytes = kChecksumBlockBytes;
  facts_fields(archive, manifest.facts);
  archive("optimizer_buffers", manifest.optimizer_buffers);
  archive.require(are_buffers(manifest.optimizer_buffers), "optimizer_buffers",
                  "a list of at most 16 different names");
  archive("block_bytes", block_bytes);
  archive.require(block_bytes == kChecksumBlockBytes, "block_bytes", "65536");
  std::size_t index = 0;
  archive.list("files", "files", manifest.files, [&](auto&& inner, FileRecord& file) {
    file_fields(inner, file, index++ == 0 ? kModelFile : kOptimizerFile);
  });
  archive.require(manifest.files.size() == 2, "files", "a list of two files");
}

// The whole, with its version and seal.

std::int64_t version_of(const Manifest& manifest) {
  const auto& buffers = manifest.optimizer_buffers;
  if (!manifest.facts.kept.empty()) return 3;
  return buffers.empty() || buffers == std::vector<std::string>{kVersion1Buffer} ? 1 : 2;
}

/// The text must end with the seal of what is before it, byte by byte.
void check_seal(std::string_view text, const std::string& file) {
  static const std::size_t kSealBytes = manifest_seal("").size();
  if (text.size() < kSealBytes) throw DataError(fmt::format("{}: too short for a manifest: cut off", file));
  const std::string_view body = text.substr(0, text.size() - kSealBytes);
  if (manifest_seal(body) != text.substr(body.size()))
    throw DataError(
        fmt::format("{}: its own checksum does not match: the manifest is damaged or cut off", file));
}

/// Sections of the model file: the header, then parameters and kept tensors in arena order.
void check_sections(const Manifest& manifest, const JsonFieldsReader& top) {
  const auto tensors = manifest.facts.tensors();
  const auto& sections = manifest.files[0].sections;
  const auto is_of = [](const CheckpointParameter& tensor, const SectionRecord& section) {
    return section.name == tensor.name && section.end - section.begin == sizeof(float) * tensor.elements();
  };
  top.require(sections.size() == tensors.size() + 1 &&
                  std::equal(tensors.begin(), tensors.end(), sections.begin() + 1, is_of),
              "parameters", "what the sections of model.safetensors are");
}

void check_version(const JsonFieldsReader& top, const std::string& file) {
  std::string format;
  std::int64_t version = 0;
  top("format", format);
  top.require(format == kFormat, "format", "'lockstep checkpoint'");
  top("version", version);
  if (version < 1 || version > kCheckpointFormatVersion)
    throw ConfigError(  // not damaged: nothing may pass it over
        fmt::format(
            "{}: format version {}, this program reads versions 1 to {}; use the release that wrote it", file,
            version, kCheckpointFormatVersion));
}

/// Manifests from before arithmetic 2 do not say any, and lack most of what came later.
void check_arithmetic(const JsonFieldsReader& top, const std::string& file) {
  std::int64_t version = 1;
  if (top.has("arithmetic", true))
    top.object("arithmetic", version, [](auto&& inner, std::int64_t& value) { inner("version", value); });
  if (version < kArithmeticVersion || version > kSmoothedPairArithmetic)
    throw ConfigError(
        fmt::format("{}: its steps are of arithmetic {}, this program reads {} and {}; use the release that "
                    "wrote it",
                    file, version, kArithmeticVersion, kSmoothedPairArithmetic));
}

}  // namespace

bool are_buffers(const std::vector<std::string>& names) {
  constexpr std::size_t kMostBuffers = 16;
  constexpr const char* kLetters = "abcdefghijklmnopqrstuvwxyz0123456789_";
  const auto is_name = [](const std::string& name) {
    return !name.empty() && name.find_first_not_of(kLetters) == name.npos;
  };
  return names.size() <= kMostBuffers && std::ranges::all_of(names, is_name) &&
         std::set(names.begin(), names.end()).size() == names.size();
}

std::map<std::string, std::string> describe_network(const Network& network) {
  const ImageShape& input = network.input_shape();
  return {{"yaml", network.yaml()},
          {"channels", std::to_string(input.channels)},
          {"height", std::to_string(input.height)},
          {"width", std::to_string(input.width)},
          {"classes", std::to_string(network.classes())}};
}

std::string channels_text(const std::vector<double>& numbers) {
  return numbers.size() == 1 ? fmt::format("{}", numbers.front())
                             : fmt::format("[{}]", fmt::join(numbers, ", "));
}

std::int64_t evaluated_test_samples(const CheckpointFacts& facts) {
  auto samples = facts.data.find(kTestSubset);
  if (samples == facts.data.end()) samples = facts.data.find("test_samples");
  return samples == facts.data.end() ? -1 : parse_whole<std::int64_t>(samples->second).value_or(-1);
}

JudgedAccuracy judged_accuracy(const CheckpointFacts& facts) {
  return {facts.accuracy(), facts.validation_accuracy ? -1 : evaluated_test_samples(facts)};
}

std::string manifest_seal(std::string_view body) {
  return fmt::format(",\n \"manifest_sha256\": \"{}\"\n}}\n", hex(sha256(std::as_bytes(std::span(body)))));
}

Json facts_json(const CheckpointFacts& facts) {
  return json_of_fields(facts, [](auto&& archive, CheckpointFacts& all) { facts_fields(archive, all); });
}

std::string write_manifest(Manifest manifest) {
  Json document = {{"format", kFormat}, {"version", version_of(manifest)}};
  manifest_fields(JsonFieldsWriter(document), manifest);
  std::string body = json_text(document, 1);
  body.resize(body.rfind('\n'));  // open again: the seal closes it
  return body + manifest_seal(body);
}

Manifest read_manifest(std::string_view text, const std::string& file) {
  check_seal(text, file);
  const json parsed = parse_json_or_discard(text);
  if (parsed.is_discarded()) throw DataError(fmt::format("{}: is not JSON", file));
  const JsonFieldsReader top(parsed, file, "manifest");
  check_version(top, file);
  check_arithmetic(top, file);
  Manifest manifest;
  manifest_fields(top, manifest);
  check_sections(manifest, top);
  return manifest;
}

}  // namespace lockstep
