// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Trains a small convolutional network on handwritten digits. The last line is the same on any number of ranks:
///
///     lockstep-get-data mnist        # once; or LOCKSTEP_DATA=FOLDER with mnist/ in it
///     ./mnist
///     mpirun -np 3 ./mnist
#include <lockstep/lockstep.hpp>

#include <cstdio>
#include <cstdlib>

int main(int argc, char** argv) {
  // With 10 epochs the options are those of launch/jobs/mnist.yaml, and so are the weights: the hash that it publishes.
  const int epochs = argc > 1 ? std::atoi(argv[1]) : 10;

  lockstep::Mpi mpi(argc, argv);
  const auto data = lockstep::load_dataset({.set = "mnist"});
  const auto net = lockstep::Network::load("net", data.train.shape(), data.train.classes());
  lockstep::Trainer trainer(net, data.train, mpi.world(),
                            {.global_batch = 512,  // all ranks together
                             .seed = 1234,
                             .optimizer = lockstep::sgd(0.08, 0.9, lockstep::nesterov)});

  for (int epoch = 1; epoch <= epochs; ++epoch) {
    trainer.epoch();
    const auto test = trainer.evaluate(data.test);  // every rank has the result
    if (mpi.world().rank() == 0)
      std::printf("epoch %d: %.2f %% of the test digits\n", epoch, 100 * test.accuracy);
  }
  if (mpi.world().rank() == 0) std::printf("weights sha256 %s\n", trainer.weights_sha256().c_str());
}
