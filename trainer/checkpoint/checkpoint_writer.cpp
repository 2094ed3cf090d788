// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Writing a checkpoint so that at every instant a complete one is on disk.
#include "common/digest.hpp"
#include "common/error.hpp"
#include "common/safetensors.hpp"
#include "trainer/checkpoint/checkpoint.hpp"
#include "trainer/checkpoint/directory.hpp"

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

}  // namespace lockstep
