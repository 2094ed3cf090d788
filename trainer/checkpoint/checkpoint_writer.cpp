// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Writing a checkpoint so that at every instant a complete one is on disk.
#include "common/digest.hpp"
#include "common/error.hpp"
#include "common/json_text.hpp"
#include "common/safetensors.hpp"
#include "trainer/checkpoint/checkpoint.hpp"
#include "trainer/checkpoint/directory.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <span>
#include <utility>

namespace lockstep {

namespace {

std::span<const std::byte> bytes_of(const std::string& text) {
  return std::as_bytes(std::span(text));
}

struct Contents {
  std::vector<std::byte> model, optimizer;
  std::string manifest;
};

Contents serialise(const CheckpointState& state) {
  const auto& parameters = state.facts.parameters;
  const auto all = state.facts.tensors();
  LOCKSTEP_CHECK(state.weights.size() == arena_size(all));
  std::vector<TensorView> optimizer;
  std::vector<std::string> buffers;
  for (const OptimizerBuffer& buffer : state.optimizer) {
    LOCKSTEP_CHECK(buffer.values.size() == arena_size(parameters));
    const auto tensors = tensors_of(parameters, buffer);
    optimizer.insert(optimizer.end(), tensors.begin(), tensors.end());
    buffers.push_back(buffer.name);
  }
  LOCKSTEP_CHECK(!state.facts.test_accuracy ||
                 (*state.facts.test_accuracy >= 0 && *state.facts.test_accuracy <= 1));
  Contents contents;
  contents.model = write_safetensors(tensors_of(all, state.weights, ""), {{"format", "pt"}});
  contents.optimizer = write_safetensors(optimizer);
  contents.manifest =
      write_manifest({state.facts,
                      {record_of(kModelFile, contents.model), record_of(kOptimizerFile, contents.optimizer)},
                      buffers});
  return contents;
}

void write_directory(Env& env, const std::string& directory, const Contents& contents) {
  env.make_directory(directory);
  write_synced(env, directory + "/" + kModelFile, contents.model);
  write_synced(env, directory + "/" + kOptimizerFile, contents.optimizer);
  write_synced(env, directory + "/" + kManifestFile, bytes_of(contents.manifest));
  env.sync_directory(directory);
}

/// Moves a checkpoint of the same step aside, under a name that find_latest also looks at. Of two left by a
/// crash the good one is kept.
void move_aside(Env& env, const std::string& target, const std::string& aside) {
  if (env.entry(target).kind == EntryKind::kNothing) return;
  const bool keep_aside = env.exists(aside) && env.exists(target) && !verify_checkpoint(env, target).empty();
  if (keep_aside) {
    env.rename(target, free_name(env, target + kDamagedSuffix, "-"));
    return;
  }
  if (!env.remove_directory(aside, checkpoint_files()))  // it holds foreign files
    env.rename(aside, free_name(env, aside, "-"));
  env.rename(target, aside);
}

/// Puts the complete temporary directory in its place; what had the name goes when the new one is safe.
void publish(Env& env, const std::string& temporary, const std::string& target) {
  const std::string aside = target + kReplacedSuffix;
  move_aside(env, target, aside);
  env.rename(temporary, target);
  env.sync_directory(parent_directory(target));
  env.remove_directory(aside, checkpoint_files());
}

/// Where to write: the usual name without what a crash left there, or another where something else has that
/// name.
std::string temporary_directory(Env& env, const std::string& parent, const std::string& name) {
  const std::string usual = parent + "/" + kTemporaryPrefix + name;
  env.remove_directory(usual, checkpoint_files());
  return free_name(env, usual);
}

void ignore_errors(const auto& cleanup) {
  try {
    cleanup();
  } catch (const Error&) {  // NOLINT(bugprone-empty-catch): the error that led here is the one to tell
  }
}

}  // namespace

std::string save_checkpoint(Env& env, const std::string& run_dir, const CheckpointState& state) {
  const Contents contents = serialise(state);
  const std::string parent = run_dir + "/" + kCheckpointsDirectory;
  const std::string name = checkpoint_name(state.facts.step);
  std::string target = parent + "/" + name;
  require_own(env, parent, EntryKind::kDirectory);
  env.make_directory(parent);
  const std::string temporary = temporary_directory(env, parent, name);
  env.sync_directory(run_dir);
  try {
    write_directory(env, temporary, contents);
    publish(env, temporary, target);
  } catch (const Error&) {
    ignore_errors([&] { env.remove_directory(temporary, checkpoint_files()); });
    throw;
  }
  return target;
}

// Writing manifest.json.

namespace {

using Json = nlohmann::ordered_json;

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

Json parameters_json(const std::vector<CheckpointParameter>& parameters) {
  Json list = Json::array();
  for (const CheckpointParameter& p : parameters) list.push_back({{"name", p.name}, {"shape", p.shape}});
  return list;
}

std::int64_t version_of(const Manifest& manifest) {
  const auto& buffers = manifest.optimizer_buffers;
  const bool as_ever = !buffers || buffers->empty() || *buffers == std::vector<std::string>{kVersion1Buffer};
  if (!manifest.facts.kept.empty()) return 3;
  return as_ever ? 1 : 2;
}

Json manifest_json(const Manifest& manifest) {
  const CheckpointFacts& facts = manifest.facts;
  Json j;
  j["format"] = "lockstep checkpoint";
  j["version"] = version_of(manifest);
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
  if (manifest.optimizer_buffers) j["optimizer_buffers"] = *manifest.optimizer_buffers;
  j["block_bytes"] = kChecksumBlockBytes;
  j["files"] = Json::array();
  for (const FileRecord& file : manifest.files) j["files"].push_back(file_json(file));
  return j;
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

}  // namespace lockstep
