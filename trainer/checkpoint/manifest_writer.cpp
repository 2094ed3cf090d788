// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Writing manifest.json.
#include "common/sha256.hpp"
#include "common/text/json_text.hpp"
#include "trainer/checkpoint/manifest.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <span>

namespace lockstep {
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
