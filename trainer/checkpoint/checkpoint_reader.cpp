// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Reading a checkpoint that may have suffered.
#include "kernels/runtime/error.hpp"
#include "trainer/checkpoint/checkpoint.hpp"
#include "trainer/checkpoint/directory.hpp"
#include "trainer/checkpoint/safetensors.hpp"

#include <fmt/format.h>

#include <cstring>
#include <span>
#include <string_view>

namespace lockstep {
namespace {

/// A file that belongs to a checkpoint: missing is damaged.
std::vector<std::byte> read_part(Env& env, const std::string& directory, const std::string& name) {
  const std::string path = directory + "/" + name;
  if (!env.exists(directory))
    throw MissingDataError(
        fmt::format("{}: there is no such checkpoint; see RUN/checkpoints for those there are", directory));
  try {
    return env.read(path);
  } catch (const MissingDataError&) {
    throw DataError(fmt::format("{}: is missing: the checkpoint is not complete", path));
  }
}

/// Copies the tensors into one buffer of arena order. Bytes may be unaligned, hence memcpy.
std::vector<float> gather(const SafetensorsFile& file, const std::vector<CheckpointParameter>& parameters,
                          const std::string& prefix) {
  std::vector<std::span<const std::byte>> parts;
  std::size_t bytes = 0;
  for (const CheckpointParameter& parameter : parameters) {
    parts.push_back(file.require(prefix + parameter.name, "F32", parameter.shape).bytes);
    bytes += parts.back().size();
  }
  std::vector<float> arena(bytes / sizeof(float));
  std::size_t position = 0;
  for (const auto& part : parts) {
    if (!part.empty()) std::memcpy(arena.data() + position, part.data(), part.size());
    position += part.size() / sizeof(float);
  }
  return arena;
}

SafetensorsFile read_verified(Env& env, const std::string& directory, const FileRecord& record) {
  const std::string path = directory + "/" + record.name;
  std::vector<std::byte> bytes = read_part(env, directory, record.name);
  const std::vector<Damage> damages = check_against(record, bytes, path);
  if (!damages.empty()) throw DataError(to_string(damages.front()));
  return SafetensorsFile::parse(std::move(bytes), path);
}

}  // namespace

Manifest load_manifest(Env& env, const std::string& path) {
  const std::vector<std::byte> bytes = read_part(env, path, kManifestFile);
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  return read_manifest(text, path + "/" + kManifestFile);
}

CheckpointState load_checkpoint(Env& env, const std::string& path) {
  const Manifest manifest = load_manifest(env, path);
  const SafetensorsFile model = read_verified(env, path, manifest.files[0]);
  const SafetensorsFile optimizer = read_verified(env, path, manifest.files[1]);
  CheckpointState state;
  state.facts = manifest.facts;
  state.weights = gather(model, manifest.facts.parameters, "");
  if (!optimizer.tensors().empty())
    state.momentum = gather(optimizer, manifest.facts.parameters, kMomentumPrefix);
  return state;
}

std::vector<Damage> verify_checkpoint(Env& env, const std::string& path) {
  std::vector<Damage> damages;
  const auto note = [&](const std::string& name, const Error& error) {
    damages.push_back({path + "/" + name, "", error.what()});
  };
  try {
    const Manifest manifest = load_manifest(env, path);
    for (const FileRecord& record : manifest.files) {
      try {
        const auto found = check_against(record, read_part(env, path, record.name), path + "/" + record.name);
        damages.insert(damages.end(), found.begin(), found.end());
      } catch (const DataError& error) {
        note(record.name, error);
      }
    }
    if (damages.empty()) load_checkpoint(env, path);
  } catch (const DataError& error) {
    note(kManifestFile, error);
  }
  return damages;
}

}  // namespace lockstep
