// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Arbitrary text as a manifest, as it is and with a correct seal put on. Refused with DataError, or read
/// such that writing it gives a manifest that reads the same. Then the same text as the manifest of a
/// checkpoint whose files are good: all that commands do with one.
#include "common/error.hpp"
#include "tests/common/memory_env.hpp"
#include "tests/fuzz/expand.hpp"
#include "trainer/checkpoint/checkpoint.hpp"
#include "trainer/checkpoint/directory.hpp"
#include "trainer/checkpoint/inspect.hpp"

#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

namespace {

using lockstep::MemoryEnv;

const std::string kDirectory = "run/checkpoints/step-00000012";

/// The checkpoint that the seed in corpus/manifest is the manifest of.
lockstep::MemoryDisk good_checkpoint() {
  lockstep::CheckpointState state;
  state.facts.step = 12;
  state.facts.parameters = {{"fc.weight", {2, 3}}, {"fc.bias", {2}}, {"scale", {}}};
  state.weights.assign(9, 0.5F);
  state.optimizer = {{"momentum", std::vector<float>(9, 0.25F)}};
  MemoryEnv env;
  env.make_directory("run");
  lockstep::save_checkpoint(env, "run", state);
  return env.disk();
}

/// Refusing is right.
template <typename Use>
void try_to(const Use& use) {
  try {
    use();
  } catch (const lockstep::DataError&) {    // NOLINT(bugprone-empty-catch)
  } catch (const lockstep::ConfigError&) {  // NOLINT(bugprone-empty-catch): of another version
  }
}

void use(std::string_view text) {
  try_to([&] {
    const lockstep::Manifest manifest = lockstep::read_manifest(text, "fuzz");
    if (lockstep::read_manifest(lockstep::write_manifest(manifest), "copy") != manifest) std::abort();
    const std::string bytes(manifest.files[0].bytes < 4096 ? manifest.files[0].bytes : 0, 'x');
    lockstep::check_against(manifest.files[0], std::as_bytes(std::span(bytes)), "fuzz");
  });
}

/// In place of the good checkpoint's own manifest.
void use_as_checkpoint(const std::string& text) {
  static const lockstep::MemoryDisk disk = good_checkpoint();
  MemoryEnv env(disk);
  const auto bytes = std::as_bytes(std::span(text));
  env.file(kDirectory + "/manifest.json").assign(bytes.begin(), bytes.end());
  try_to([&] {
    lockstep::verify(env, kDirectory);
    const auto found = lockstep::open_checkpoint(env, kDirectory, [](const std::string&) {});
    lockstep::inspect_checkpoint(found.path, found.state);
    lockstep::export_npz(found.state);
  });
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::string text = lockstep::fuzz::expand(data, size);
  use(text);
  // Behind the seal. What stands for the text before it is everything up to the last line that could be one.
  const std::size_t seal = lockstep::manifest_seal("").size();
  if (text.size() > seal && text.ends_with("\"\n}\n")) text.resize(text.size() - seal);
  text += lockstep::manifest_seal(text);
  use(text);
  use_as_checkpoint(text);
  return 0;
}
