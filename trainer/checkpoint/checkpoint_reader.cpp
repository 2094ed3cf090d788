// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Reading a checkpoint that may have suffered.
#include "common/error.hpp"
#include "common/safetensors.hpp"
#include "trainer/checkpoint/checkpoint.hpp"
#include "trainer/checkpoint/directory.hpp"

#include <fmt/format.h>

#include <cstring>
#include <span>
#include <string_view>

namespace lockstep {
namespace {

/// Something that `ask` asks about a file of a checkpoint. If it is missing the checkpoint is damaged, unless
/// that is gone as a whole: the run may have pruned it this moment, which begins with renaming it.
auto ask_part(Env& env, const std::string& directory, const std::string& name, const auto& ask) {
  const std::string path = directory + "/" + name;
  try {
    return ask(path);
  } catch (const MissingDataError&) {
    if (env.exists(directory))
      throw DataError(fmt::format("{}: is missing: the checkpoint is not complete", path));
    throw MissingDataError(
        fmt::format("{}: there is no such checkpoint; see RUN/checkpoints for those there are", directory));
  }
}

std::vector<std::byte> read_part(Env& env, const std::string& directory, const std::string& name) {
  return ask_part(env, directory, name, [&](const std::string& path) { return env.read(path); });
}

std::uint64_t size_of_part(Env& env, const std::string& directory, const std::string& name) {
  return ask_part(env, directory, name, [&](const std::string& path) { return env.size(path); });
}

/// A file and what is wrong with it. One of another size than recorded is not read: it could be of any.
struct CheckedFile {
  std::vector<std::byte> bytes;
  std::vector<Damage> damages;
};

CheckedFile read_checked(Env& env, const std::string& directory, const FileRecord& record) {
  const std::string path = directory + "/" + record.name;
  const std::uint64_t size = size_of_part(env, directory, record.name);
  if (size != record.bytes) return {{}, {size_damage(record, size, path)}};
  CheckedFile file{read_part(env, directory, record.name), {}};
  file.damages = check_against(record, file.bytes, path);
  return file;
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
  auto [bytes, damages] = read_checked(env, directory, record);
  if (!damages.empty()) throw DataError(to_string(damages.front()));
  return SafetensorsFile::parse(std::move(bytes), directory + "/" + record.name);
}

Manifest manifest_of(Env& env, const std::string& directory) {
  const std::string path = directory + "/" + kManifestFile;
  if (size_of_part(env, directory, kManifestFile) > kMaxManifestBytes)
    throw DataError(fmt::format("{}: too large for a manifest", path));
  const std::vector<std::byte> bytes = read_part(env, directory, kManifestFile);
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  return read_manifest(text, path);
}

/// Checkpoints that do not name their buffers are of a time when momentum was all that an optimiser had.
std::vector<std::string> buffers_of(const Manifest& manifest, const SafetensorsFile& optimizer) {
  if (manifest.optimizer_buffers) return *manifest.optimizer_buffers;
  if (optimizer.tensors().empty()) return {};
  return {kVersion1Buffer};
}

CheckpointState state_of(Env& env, const std::string& path, Weights accepted) {
  const Manifest manifest = manifest_of(env, path);
  const SafetensorsFile model = read_verified(env, path, manifest.files[0]);
  const SafetensorsFile optimizer = read_verified(env, path, manifest.files[1]);
  CheckpointState state;
  state.facts = manifest.facts;
  state.weights = gather(model, manifest.facts.tensors(), "");
  const std::string wrong =
      accepted == Weights::kAny ? "" : unusable_weights(manifest.facts.tensors(), state.weights);
  if (!wrong.empty()) throw DataError(fmt::format("{}/{}: {}", path, kModelFile, wrong));
  for (const std::string& name : buffers_of(manifest, optimizer))
    state.optimizer.push_back({name, gather(optimizer, manifest.facts.parameters, tensor_prefix(name))});
  return state;
}

std::vector<Damage> damages_of(Env& env, const std::string& path) {
  std::vector<Damage> damages;
  const auto note = [&](const std::string& name, const Error& error) {
    const std::string file = path + "/" + name, text = error.what();
    const bool named = text.starts_with(file + ": ");  // to_string names it, too
    damages.push_back({file, "", named ? text.substr(file.size() + 2) : text});
  };
  try {
    const Manifest manifest = manifest_of(env, path);
    for (const FileRecord& record : manifest.files) {
      try {
        const auto found = read_checked(env, path, record).damages;
        damages.insert(damages.end(), found.begin(), found.end());
      } catch (const DataError& error) {
        note(record.name, error);
      }
    }
    if (!damages.empty()) return damages;
    const CheckpointState state = state_of(env, path, Weights::kAny);
    const std::string wrong = unusable_weights(state.facts.tensors(), state.weights);
    if (!wrong.empty()) damages.push_back({path + "/" + kModelFile, "", wrong});
  } catch (const DataError& error) {
    note(kManifestFile, error);
  }
  return damages;
}

}  // namespace

Manifest load_manifest(Env& env, const std::string& path) {
  return read_patiently(env, [&] { return manifest_of(env, split_average(env, path).path); });
}

CheckpointState load_checkpoint(Env& env, const std::string& path, Weights accepted) {
  return read_patiently(env, [&] { return state_of(env, path, accepted); });
}

std::vector<Damage> verify_checkpoint(Env& env, const std::string& path) {
  return read_patiently(env, [&] { return damages_of(env, path); });
}

}  // namespace lockstep
