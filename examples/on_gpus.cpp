// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Trains on a GPU for each rank where there are some, and on CPU cores elsewhere. The last line is the same:
///
///     mpirun -np 2 ./on_gpus
///     ./on_gpus emulated        # a GPU in host code, slow
#include <lockstep/gpu.hpp>
#include <lockstep/lockstep.hpp>

#include <cstdio>

int main(int argc, char** argv) {
  const char* device_name = argc > 1 ? argv[1] : "auto";

  lockstep::Mpi mpi(argc, argv);
  const auto device = lockstep::gpu(mpi.world(), device_name);
  const auto data = lockstep::load_dataset({.set = "synthetic", .train_samples = 1000, .test_samples = 200});
  const auto net = lockstep::Network::load("net", data.train.shape(), data.train.classes());
  lockstep::Trainer trainer(
      net, data.train, mpi.world(),
      {.global_batch = 250, .optimizer = lockstep::sgd(0.05, 0.9), .grain = 50, .device = device});

  for (int epoch = 0; epoch < 2; ++epoch) trainer.epoch();
  const auto test = trainer.evaluate(data.test);
  if (mpi.world().rank() != 0) return 0;
  std::printf("%s: %.1f %% of the test digits\n", device.name().c_str(), 100 * test.accuracy);
  std::printf("weights sha256 %s\n", trainer.weights_sha256().c_str());
}
