// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// manifest.json, written and read: what is added to CheckpointFacts is added to facts_json() and parse_facts().
#include "common/digest.hpp"
#include "common/error.hpp"
#include "common/json_text.hpp"
#include "common/safetensors_header.hpp"
#include "kernels/numerics/sums.hpp"
#include "trainer/checkpoint/checkpoint.hpp"
#include "trainer/checkpoint/manifest_object.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <limits>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <utility>

namespace lockstep {
namespace {

using nlohmann::json;
using Json = nlohmann::ordered_json;

// The facts. Keys that only newer checkpoints have are left out where they would say nothing, so that older programs read
// what they can.

Json parameters_json(const std::vector<CheckpointParameter>& parameters) {
  Json list = Json::array();
  for (const CheckpointParameter& p : parameters) list.push_back({{"name", p.name}, {"shape", p.shape}});
  return list;
}

void facts_json(const CheckpointFacts& facts, Json& j) {
  j["step"] = facts.step;
  j["epoch"] = facts.epoch;
  j["step_in_epoch"] = facts.step_in_epoch;
  j["seed"] = facts.seed;
  j["epoch_samples"] = facts.epoch_samples;
  j["epoch_correct"] = facts.epoch_correct;
  j["epoch_loss_sum"] = facts.epoch_loss_sum;
  if (!facts.epoch_loss_units.empty()) j["epoch_loss_units"] = facts.epoch_loss_units;
  if (!facts.unprinted.units.empty()) {
    j["unprinted_loss"] = {{"steps", facts.unprinted.steps},
                           {"samples", facts.unprinted.samples},
                           {"units", facts.unprinted.units}};
  }
  if (!facts.gradient_units.exponents.empty()) {
    j["gradient_units"] = {{"exponents", facts.gradient_units.exponents},
                           {"changed_at", facts.gradient_units.changed_at}};
  }
  if (facts.arithmetic != CheckpointArithmetic())
    j["arithmetic"] = {{"version", facts.arithmetic.version}, {"since", facts.arithmetic.since}};
  if (facts.trail) j["trail"] = {{"records", facts.trail->records}, {"sha256", facts.trail->sha256}};
  if (facts.metrics) j["metrics"] = {{"lines", facts.metrics->lines}, {"sha256", facts.metrics->sha256}};
  if (facts.test_accuracy) {
    j["test_accuracy"] = *facts.test_accuracy;
    j["test_step"] = facts.step;
  }
  j["job"] = facts.job;
  j["model"] = facts.model;
  if (!facts.data.empty()) j["data"] = facts.data;
  j["world"] = facts.world;
  j["bucket_plan"] = facts.bucket_plan;
  if (!facts.bucket_sizes.empty()) j["bucket_sizes"] = facts.bucket_sizes;
  j["parameters"] = parameters_json(facts.parameters);
  if (!facts.kept.empty()) j["kept"] = parameters_json(facts.kept);
}

/// What the lists of tensors read so far come to.
struct TensorsSoFar {
  std::set<std::string> names;
  std::size_t bytes = 0;
};

/// Together they are no larger than a file may be, and no name is there twice: memory for all of them is
/// asked for at once.
std::vector<CheckpointParameter> parse_tensors(const ManifestObject& top, const char* key,
                                               const std::string& file, TensorsSoFar& so_far) {
  std::vector<CheckpointParameter> parameters;
  for (const json& entry : top.list(key)) {
    const ManifestObject object(entry, file, fmt::format("{}[{}]", key, parameters.size()));
    CheckpointParameter parameter{object.text("name"), object.sizes("shape")};
    std::size_t bytes = 0;
    if (parameter.shape.size() > kMaxSafetensorsRank ||
        !safetensors_tensor_bytes("F32", parameter.shape, &bytes))
      object.wrong("shape", "one that fits into memory");
    if (bytes > std::numeric_limits<std::size_t>::max() - so_far.bytes)
      object.wrong("shape", "one that fits into memory together with those before it");
    so_far.bytes += bytes;
    if (!so_far.names.insert(parameter.name).second) object.wrong("name", "another than those before it");
    parameters.push_back(std::move(parameter));
  }
  return parameters;
}

/// Before there was "test_step", the accuracy was that of the last evaluation, whatever has been trained
/// since; only at the end of an epoch is that an evaluation of these weights.
std::optional<double> parse_test_accuracy(const ManifestObject& top, const CheckpointFacts& facts) {
  if (!top.has("test_accuracy")) return std::nullopt;
  const double accuracy = top.fraction("test_accuracy");
  const bool of_these_weights = top.has("test_step") ? top.integer("test_step") == facts.step
                                                     : facts.step_in_epoch == 0 && facts.step > 0;
  return of_these_weights ? std::optional(accuracy) : std::nullopt;
}

std::vector<std::int64_t> parse_loss_units(const ManifestObject& top, const char* key) {
  constexpr std::int64_t kLimb = std::int64_t{1} << kWideLimbBits;
  auto limbs = top.integers(key, -kLimb, kLimb - 1);
  if (limbs.size() != kWideLimbs) top.wrong(key, "a list of six numbers");
  return limbs;
}

CheckpointLoss parse_unprinted(const ManifestObject& loss) {
  return {loss.integer("steps"), loss.integer("samples"), parse_loss_units(loss, "units")};
}

CheckpointUnits parse_units(const ManifestObject& units, std::size_t tensors) {
  CheckpointUnits result;
  for (const std::int64_t exponent : units.integers("exponents", kLeastExactExponent, 127))
    result.exponents.push_back(static_cast<std::int16_t>(exponent));
  if (result.exponents.size() != tensors)
    units.wrong("exponents", "a list of one number for each of the parameters");
  result.changed_at = units.integer("changed_at");
  return result;
}

CheckpointArithmetic parse_arithmetic(const ManifestObject& arithmetic, std::int64_t step) {
  const CheckpointArithmetic result{arithmetic.integer("version"), arithmetic.integer("since")};
  if (result.since < 0 || result.since > step) arithmetic.wrong("since", "a step of this run");
  return result;
}

std::string parse_digest(const ManifestObject& object) {
  std::string digest = object.text("sha256");
  const bool is_digest =
      digest.size() == 64 && digest.find_first_not_of("0123456789abcdef") == std::string::npos;
  if (!is_digest) object.wrong("sha256", "64 hexadecimal digits");
  return digest;
}

/// Manifests without "bucket_sizes" have them in words alone: "2 buckets: 21,580 + 260 parameters, ...".
std::vector<std::size_t> bucket_sizes_in_words(const std::string& plan) {
  constexpr std::string_view kDigits = "0123456789";
  const std::size_t begin = plan.find(": "), end = plan.find(" parameter");
  if (begin == plan.npos || end == plan.npos || begin > end) return {};
  std::vector<std::size_t> sizes(1);
  for (const char c : std::string_view(plan).substr(begin, end - begin)) {
    if (c == '+') sizes.push_back(0);
    if (kDigits.find(c) != kDigits.npos) sizes.back() = sizes.back() * 10 + static_cast<std::size_t>(c - '0');
  }
  return sizes;
}

CheckpointFacts parse_facts(const ManifestObject& top, const std::string& file) {
  CheckpointFacts facts;
  facts.step = top.integer("step");
  facts.epoch = top.integer("epoch");
  facts.step_in_epoch = top.integer("step_in_epoch");
  facts.seed = top.unsigned_integer("seed");
  facts.epoch_samples = top.integer("epoch_samples");
  facts.epoch_correct = top.integer("epoch_correct");
  facts.epoch_loss_sum = top.number("epoch_loss_sum");
  constexpr double kAnyLossOfAnEpoch = 0x1p157;  // the largest float for 2^29 samples
  if (!(std::abs(facts.epoch_loss_sum) < kAnyLossOfAnEpoch)) top.wrong("epoch_loss_sum", "a sum of losses");
  if (top.has("epoch_loss_units")) facts.epoch_loss_units = parse_loss_units(top, "epoch_loss_units");
  if (top.has("unprinted_loss")) facts.unprinted = parse_unprinted(top.object("unprinted_loss"));
  if (top.has("arithmetic")) facts.arithmetic = parse_arithmetic(top.object("arithmetic"), facts.step);
  if (top.has("trail")) {
    const ManifestObject trail = top.object("trail");
    facts.trail = {trail.integer("records"), parse_digest(trail)};
  }
  if (top.has("metrics")) {
    const ManifestObject metrics = top.object("metrics");
    facts.metrics = {metrics.integer("lines"), parse_digest(metrics)};
  }
  facts.test_accuracy = parse_test_accuracy(top, facts);
  facts.job = top.texts("job");
  facts.model = top.texts("model");
  if (top.has("data")) facts.data = top.texts("data");
  facts.world = top.texts("world");
  facts.bucket_plan = top.text("bucket_plan");
  facts.bucket_sizes =
      top.has("bucket_sizes") ? top.sizes("bucket_sizes") : bucket_sizes_in_words(facts.bucket_plan);
  TensorsSoFar so_far;
  facts.parameters = parse_tensors(top, "parameters", file, so_far);
  if (top.has("kept")) facts.kept = parse_tensors(top, "kept", file, so_far);
  if (top.has("gradient_units"))
    facts.gradient_units = parse_units(top.object("gradient_units"), facts.parameters.size());
  return facts;
}

// The files and their checksums.

/// Eight hexadecimal digits a block, one after another.
std::string crc32_text(const std::vector<std::uint32_t>& crc32s) {
  std::string text;
  for (const std::uint32_t crc : crc32s) text += fmt::format("{:08x}", crc);
  return text;
}

Json file_json(const FileRecord& file) {
  Json sections = Json::array();
  for (const SectionRecord& section : file.sections)
    sections.push_back({{"name", section.name},
                        {"begin", section.begin},
                        {"end", section.end},
                        {"crc32", crc32_text(section.crc32s)}});
  return {{"name", file.name}, {"bytes", file.bytes}, {"sha256", file.sha256}, {"sections", sections}};
}

std::vector<std::uint32_t> parse_crc32s(const ManifestObject& section, std::size_t blocks) {
  const std::string text = section.text("crc32");
  if (text.size() % 8 != 0 || text.size() / 8 != blocks)
    section.wrong("crc32", "eight digits for each block");
  std::vector<std::uint32_t> crc32s(blocks);
  for (std::size_t i = 0; i < text.size(); ++i) {
    const std::size_t digit = std::string_view("0123456789abcdef").find(text[i]);
    if (digit == std::string_view::npos) section.wrong("crc32", "hexadecimal");
    crc32s[i / 8] = crc32s[i / 8] << 4 | static_cast<std::uint32_t>(digit);
  }
  return crc32s;
}

FileRecord parse_file(const ManifestObject& object, const std::string& file, const char* name) {
  FileRecord record;
  record.name = object.text("name");
  if (record.name != name) object.wrong("name", name);
  record.bytes = object.unsigned_integer("bytes");
  record.sha256 = object.text("sha256");
  std::size_t position = 0;
  for (const json& entry : object.list("sections")) {
    const ManifestObject section(entry, file, fmt::format("{}.sections[{}]", name, record.sections.size()));
    SectionRecord s{
        section.text("name"), section.unsigned_integer("begin"), section.unsigned_integer("end"), {}};
    if (s.begin != position || s.end < s.begin || s.end > record.bytes)
      section.wrong("end", "where sections meet");
    s.crc32s = parse_crc32s(section, checksum_blocks(s.end - s.begin));
    position = s.end;
    record.sections.push_back(std::move(s));
  }
  if (position != record.bytes) object.wrong("sections", "as long as the file");
  return record;
}

// The whole, with its version and seal.

std::int64_t version_of(const Manifest& manifest) {
  const auto& buffers = manifest.optimizer_buffers;
  const bool as_ever = !buffers || buffers->empty() || *buffers == std::vector<std::string>{kVersion1Buffer};
  if (!manifest.facts.kept.empty()) return 3;
  return as_ever ? 1 : 2;
}

Json manifest_json(const Manifest& manifest) {
  Json j;
  j["format"] = "lockstep checkpoint";
  j["version"] = version_of(manifest);
  facts_json(manifest.facts, j);
  if (manifest.optimizer_buffers) j["optimizer_buffers"] = *manifest.optimizer_buffers;
  j["block_bytes"] = kChecksumBlockBytes;
  j["files"] = Json::array();
  for (const FileRecord& file : manifest.files) j["files"].push_back(file_json(file));
  return j;
}

/// The text must end with the seal of what is before it, byte by byte.
void check_seal(std::string_view text, const std::string& file) {
  static const std::size_t kSealBytes = manifest_seal("").size();
  if (text.size() > kMaxManifestBytes) throw DataError(fmt::format("{}: too large for a manifest", file));
  if (text.size() < kSealBytes) throw DataError(fmt::format("{}: too short for a manifest: cut off", file));
  const std::string_view body = text.substr(0, text.size() - kSealBytes);
  if (manifest_seal(body) != text.substr(body.size()))
    throw DataError(
        fmt::format("{}: its own checksum does not match: the manifest is damaged or cut off", file));
}

/// Names such as "exp_avg", each there once.
std::vector<std::string> parse_buffers(const ManifestObject& top) {
  constexpr std::size_t kMostBuffers = 16;
  constexpr const char* kLetters = "abcdefghijklmnopqrstuvwxyz0123456789_";
  std::vector<std::string> names;
  std::set<std::string> different;
  for (const json& entry : top.list("optimizer_buffers")) {
    const std::string name = entry.is_string() ? entry.get<std::string>() : "";
    const bool is_name = !name.empty() && name.find_first_not_of(kLetters) == name.npos;
    if (!is_name || !different.insert(name).second || different.size() > kMostBuffers)
      top.wrong("optimizer_buffers", "a list of at most 16 different names");
    names.push_back(name);
  }
  return names;
}

/// Parameters and what is kept are the tensors of the model file: one section each, behind that of the header.
void check_sections(const Manifest& manifest, const ManifestObject& top) {
  std::map<std::string_view, std::size_t> bytes;
  const auto tensors = manifest.facts.tensors();
  for (const CheckpointParameter& p : tensors) bytes[p.name] = sizeof(float) * arena_size({p});
  std::size_t matches = 0;
  for (const SectionRecord& section : manifest.files[0].sections) {
    const auto parameter = bytes.find(section.name);
    if (parameter != bytes.end() && parameter->second == section.end - section.begin) ++matches;
  }
  if (matches != bytes.size() || manifest.files[0].sections.size() != bytes.size() + 1)
    top.wrong("parameters", "what the sections of model.safetensors are");
}

void check_version(const ManifestObject& top, const std::string& file) {
  if (top.text("format") != "lockstep checkpoint") top.wrong("format", "'lockstep checkpoint'");
  const std::int64_t version = top.integer("version");
  if (version < 1 || version > kCheckpointFormatVersion)
    throw ConfigError(  // not damaged: nothing may pass it over
        fmt::format(
            "{}: format version {}, this program reads versions 1 to {}; use the release that wrote it", file,
            version, kCheckpointFormatVersion));
  if (top.unsigned_integer("block_bytes") != kChecksumBlockBytes) top.wrong("block_bytes", "65536");
}

}  // namespace

std::string manifest_seal(std::string_view body) {
  return fmt::format(",\n \"manifest_sha256\": \"{}\"\n}}\n", hex(sha256(std::as_bytes(std::span(body)))));
}

std::string write_manifest(const Manifest& manifest) {
  std::string body = json_text(manifest_json(manifest), 1);
  body.resize(body.rfind('\n'));  // open again: the seal closes it
  return body + manifest_seal(body);
}

Manifest read_manifest(std::string_view text, const std::string& file) {
  check_seal(text, file);
  const json parsed = parse_json_or_discard(text);
  if (parsed.is_discarded()) throw DataError(fmt::format("{}: is not JSON", file));
  const ManifestObject top(parsed, file, "manifest");
  check_version(top, file);

  Manifest manifest;
  manifest.facts = parse_facts(top, file);
  const json& files = top.list("files");
  if (files.size() != 2) top.wrong("files", "a list of two files");
  manifest.files.push_back(parse_file(ManifestObject(files[0], file, "files[0]"), file, kModelFile));
  manifest.files.push_back(parse_file(ManifestObject(files[1], file, "files[1]"), file, kOptimizerFile));
  if (top.has("optimizer_buffers")) manifest.optimizer_buffers = parse_buffers(top);
  check_sections(manifest, top);
  return manifest;
}

}  // namespace lockstep
