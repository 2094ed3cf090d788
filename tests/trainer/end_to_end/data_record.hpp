// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Runs on a set of files of the test's own.
#pragma once

#include "tests/data/idx_fixture.hpp"
#include "tests/support/prelude.hpp"
#include "tests/trainer/end_to_end/program.hpp"
#include "trainer/checkpoint/checkpoint.hpp"

namespace lockstep::testing {

/// Training on a small image set in OWN while another one of the same name lies where $LOCKSTEP_DATA points
/// to.
class DataRecordTest : public ::testing::Test {
 protected:
  DataRecordTest() {
    test::write_image_set(own(), 40, 10);
    test::write_image_set(directory_.path("lockstep-data/mnist"), 40, 10);
    write_text(directory_.path("lockstep-data/mnist/t10k-images-idx3-ubyte"),
               read_text(own() + "/t10k-images-idx3-ubyte").replace(40, 3, "xyz"));
    write_text(directory_.path("job.yaml"),
               "model: linear\n"
               "data: {set: mnist, global_batch: 16, root: " +
                   own() +
                   "}\n"
                   "train: {epochs: 2, optimizer: {lr: 0.3, momentum: 0}}\n"
                   "parallel: {device: cpu, grain: 4, backend: thread}\n"
                   "run: {dir: " +
                   run() + ", checkpoint_every_steps: 2}\n");
  }

  std::string own() const { return directory_.path("own"); }
  std::string other() const { return directory_.path("lockstep-data"); }
  std::string run() const { return directory_.path("run"); }
  Outcome command(const std::string& arguments) const {
    return run_shell("LOCKSTEP_DATA=" + other() + " $LOCKSTEP_PROGRAM " + arguments);
  }
  Outcome train(const std::string& overrides = "") const {
    return command("train " + directory_.path("job.yaml") + " " + overrides);
  }
  void train_well(const std::string& overrides = "") const { ended_well(train(overrides)); }
  void flip_byte(const std::string& file, std::size_t offset) const {
    std::string bytes = read_text(own() + file);
    bytes[offset] ^= 1;
    write_text(own() + file, bytes);
  }
  /// Rewrites the manifest of every checkpoint, sealed as it should be.
  void edit_manifests(const std::function<void(CheckpointFacts&)>& edit) const {
    for (const auto& entry : std::filesystem::directory_iterator(run() + "/checkpoints")) {
      const std::string path = entry.path() / kManifestFile;
      Manifest manifest = read_manifest(read_text(path), path);
      edit(manifest.facts);
      write_text(path, write_manifest(manifest));
    }
  }
  TemporaryDirectory directory_;
};

}  // namespace lockstep::testing
