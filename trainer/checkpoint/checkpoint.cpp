// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// A checkpoint is written to a temporary directory and renamed; nothing of one is used before it is verified.
#include "trainer/checkpoint/checkpoint.hpp"

#include "common/error.hpp"
#include "common/safetensors.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <span>
#include <utility>

namespace lockstep {

namespace {

/// A file whose tensors stay in the snapshot: together they may be as large as all that training holds.
struct TensorFile {
  std::vector<std::byte> head;
  std::vector<TensorView> tensors;

  FileRecord record(const char* name) const { return record_of(name, head, tensors); }
  void write(Env& env, const std::string& path) const {
    std::vector<std::span<const std::byte>> pieces{head};
    for (const TensorView& tensor : tensors) pieces.push_back(tensor.bytes);
    write_pieces_synced(env, path, pieces);
  }
};

/// Borrows the state.
struct Contents {
  TensorFile model, optimizer;
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
    std::ranges::move(tensors_of(parameters, buffer), std::back_inserter(optimizer));
    buffers.push_back(buffer.name);
  }
  LOCKSTEP_CHECK(!state.facts.test_accuracy ||
                 (*state.facts.test_accuracy >= 0 && *state.facts.test_accuracy <= 1));
  const std::vector<TensorView> model = tensors_of(all, state.weights, "");
  Contents contents{
      {safetensors_head(model, {{"format", "pt"}}), model}, {safetensors_head(optimizer), optimizer}, ""};
  contents.manifest = write_manifest(
      {state.facts, {contents.model.record(kModelFile), contents.optimizer.record(kOptimizerFile)}, buffers});
  return contents;
}

void write_directory(Env& env, const std::string& directory, const Contents& contents) {
  env.make_directory(directory);
  contents.model.write(env, directory + "/" + kModelFile);
  contents.optimizer.write(env, directory + "/" + kOptimizerFile);
  write_synced(env, directory + "/" + kManifestFile, std::as_bytes(std::span(contents.manifest)));
  env.sync_directory(directory);
}

/// Moves a checkpoint of the same step aside, under a name that find_latest also looks at. Of two left by a
/// crash the good one is kept.
void move_aside(Env& env, const std::string& target, const std::string& aside) {
  if (env.entry(target).kind == EntryKind::kNothing) return;
  if (env.exists(aside) && env.exists(target) && !verify_checkpoint(env, target).empty())
    return env.rename(target, free_name(env, target + kDamagedSuffix, "-"));
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

/// Directory to write to: the usual name, cleared of a crashed save's files. Another one if that name is
/// taken.
std::string temporary_directory(Env& env, const std::string& parent, const std::string& name) {
  const std::string usual = parent + "/" + kTemporaryPrefix + name;
  env.remove_directory(usual, checkpoint_files());
  return free_name(env, usual);
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
    try {
      env.remove_directory(temporary, checkpoint_files());
    } catch (const Error&) {  // NOLINT(bugprone-empty-catch): the error that led here is the one to tell
    }
    throw;
  }
  return target;
}

// Reading a checkpoint that may have suffered.

namespace {

/// Result of `ask`, a method of Env, for a file of a checkpoint. If it is missing the checkpoint is damaged, unless
/// that is gone as a whole: the run may have pruned it this moment, which begins with renaming it.
auto ask_part(Env& env, const std::string& directory, const std::string& name, auto ask) {
  const std::string path = directory + "/" + name;
  try {
    return (env.*ask)(path);
  } catch (const MissingDataError&) {
    if (env.exists(directory))
      throw DataError(fmt::format("{}: is missing: the checkpoint is not complete", path));
    throw MissingDataError(
        fmt::format("{}: there is no such checkpoint; see RUN/checkpoints for those there are", directory));
  }
}

/// The error of a file, which it may name: to_string names it, too.
Damage damage_of(const std::string& path, const DataError& error) {
  const std::string text = error.what();
  return {path, "", text.starts_with(path + ": ") ? text.substr(path.size() + 2) : text};
}

/// A file and what is wrong with it. One of another size than recorded is not read: it could be of any.
std::pair<std::vector<std::byte>, std::vector<Damage>> read_checked(Env& env, const std::string& directory,
                                                                    const FileRecord& record) {
  const std::string path = directory + "/" + record.name;
  try {
    const std::uint64_t size = ask_part(env, directory, record.name, &Env::size);
    if (size != record.bytes) return {{}, {size_damage(record, size, path)}};
    auto bytes = ask_part(env, directory, record.name, &Env::read);
    auto damages = check_against(record, bytes, path);
    return {std::move(bytes), std::move(damages)};
  } catch (const DataError& error) {
    return {{}, {damage_of(path, error)}};
  }
}

/// Copies the tensors into one buffer of arena order, as bytes, since numbers may be unaligned in the file.
std::vector<float> gather(const SafetensorsFile& file, const std::vector<CheckpointParameter>& parameters,
                          const std::string& prefix) {
  std::vector<std::span<const std::byte>> parts;  // before memory is taken for what a manifest claims
  for (const CheckpointParameter& parameter : parameters)
    parts.push_back(file.require(prefix + parameter.name, "F32", parameter.shape).bytes);
  std::vector<float> arena(arena_size(parameters));
  auto rest = std::as_writable_bytes(std::span(arena)).begin();
  for (const auto& part : parts) rest = std::ranges::copy(part, rest).out;
  return arena;
}

SafetensorsFile read_verified(Env& env, const std::string& directory, const FileRecord& record) {
  auto [bytes, damages] = read_checked(env, directory, record);
  if (!damages.empty()) throw DataError(to_string(damages.front()));
  return SafetensorsFile::parse(std::move(bytes), directory + "/" + record.name);
}

Manifest manifest_of(Env& env, const std::string& directory) {
  const std::string path = directory + "/" + kManifestFile;
  if (ask_part(env, directory, kManifestFile, &Env::size) > kMaxManifestBytes)
    throw DataError(fmt::format("{}: too large for a manifest", path));
  return read_manifest(as_text(ask_part(env, directory, kManifestFile, &Env::read)), path);
}

CheckpointState state_of(Env& env, const std::string& path, Weights accepted) {
  const Manifest manifest = manifest_of(env, path);
  const SafetensorsFile model = read_verified(env, path, manifest.files[0]);
  const SafetensorsFile optimizer = read_verified(env, path, manifest.files[1]);
  CheckpointState state{.facts = manifest.facts, .weights = gather(model, manifest.facts.tensors(), "")};
  const std::string wrong =
      accepted == Weights::kAny ? "" : unusable_weights(manifest.facts.tensors(), state.weights);
  if (!wrong.empty()) throw DataError(fmt::format("{}/{}: {}", path, kModelFile, wrong));
  for (const std::string& name : manifest.optimizer_buffers)
    state.optimizer.push_back({name, gather(optimizer, manifest.facts.parameters, tensor_prefix(name))});
  return state;
}

std::vector<Damage> damages_of(Env& env, const std::string& path) {
  std::vector<Damage> damages;
  try {
    const Manifest manifest = manifest_of(env, path);
    for (const FileRecord& record : manifest.files)
      std::ranges::move(read_checked(env, path, record).second, std::back_inserter(damages));
    if (!damages.empty()) return damages;
    const CheckpointState state = state_of(env, path, Weights::kAny);
    const std::string wrong = unusable_weights(state.facts.tensors(), state.weights);
    if (!wrong.empty()) damages.push_back({path + "/" + kModelFile, "", wrong});
  } catch (const DataError& error) {
    damages.push_back(damage_of(path + "/" + kManifestFile, error));
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
