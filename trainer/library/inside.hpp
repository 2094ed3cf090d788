// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The inner side of the public classes (include/lockstep): each holds one of Lockstep's own. Here lockstep::v0::NAME is the
/// public one, lockstep::NAME ours.
#pragma once

#include "comm/agreement.hpp"
#include "comm/communicator.hpp"
#include "common/buffers.hpp"
#include "data/dataset.hpp"
#include "data/normalisation.hpp"
#include "models/layer_options.hpp"
#include "models/network.hpp"

#include <lockstep/communicator.hpp>
#include <lockstep/dataset.hpp>
#include <lockstep/device.hpp>
#include <lockstep/layer.hpp>
#include <lockstep/loss.hpp>
#include <lockstep/network.hpp>

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace lockstep {
class HostLoss;
class ParallelStrategy;
struct TrainingSetup;
}  // namespace lockstep

namespace lockstep::v0 {

struct Communicator::Inside {
  lockstep::Communicator& comm;
};

struct Dataset::Inside {
  std::shared_ptr<const lockstep::Dataset> set = {};
  Normalisation normalisation = {};
  std::string name = {};       ///< in the catalogue; empty: a program's own
  std::string directory = {};  ///< holds its files; empty: there are none
  std::vector<std::string> class_names = {};
};

/// A set whose samples lie in the memory of another one, which it keeps.
lockstep::Dataset borrow(const std::shared_ptr<const lockstep::Dataset>& set);

struct Network::Inside {
  lockstep::Network network;
};

/// Made by lockstep::gpu(), which the core is built without.
struct Device::Inside {
  std::string name;
  std::size_t bucket_bytes = 0;  ///< at least
  /// Collective. @throws DeviceError  no room, or no kernels for the network
  std::function<std::unique_ptr<ParallelStrategy>(const TrainingSetup&, lockstep::Communicator&)> make;
};

struct LayerOptions::Inside {
  const lockstep::LayerOptions& options;
};

/// Calls what is collective and agrees. After its error every rank has the sentence of the one that failed, for a program
/// may catch it anywhere.
inline void in_words(lockstep::Communicator& comm, const std::function<void()>& collective) {
  try {
    collective();
  } catch (const AgreedError& error) {
    const std::vector<std::string> words = gather_text(comm, error.what());
    throw AgreedError(error.code(), at(words, error.speaker()), error.speaker());
  }
}
/// agree(), with words for every rank.
inline void agree_in_words(lockstep::Communicator& comm, const std::function<void()>& action) {
  in_words(comm, [&] { agree(comm, action); });
}

/// A loss of a program's own as the core takes it.
std::unique_ptr<const HostLoss> adapt(std::shared_ptr<const OwnLoss> loss);

}  // namespace lockstep::v0
