// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The sections train.optimizer and train.schedule of a job. Field order and names are those of the job file;
/// which of them a kind of optimiser or schedule has, and its defaults, say the catalogues.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep {

/// How the learning rate follows from the global batch.
struct LrScalingSection {
  std::string rule = "none";      ///< none | linear | sqrt
  std::int64_t base_batch = 256;  ///< the global batch that train.optimizer.lr is meant for
};

struct OptimizerSection {
  std::string kind = "sgd";
  double lr = 0.02;
  double momentum = 0.9;
  double weight_decay = 0;
  double dampening = 0;
  bool nesterov = false;
  bool maximize = false;
  std::vector<double> betas = {0.9, 0.999};
  bool amsgrad = false;
  double eps = 1e-8;
  double alpha = 0.99;
  double trust_coefficient = 0.001;
  bool decay_biases = true;
  LrScalingSection lr_scaling = {};
};

/// Tensors that are treated otherwise than the rest.
struct GroupSection {
  std::string match;                        ///< a pattern of names: see matches_pattern()
  double lr_factor = 1;                     ///< times the rate that all have
  std::optional<double> weight_decay = {};  ///< nothing: that of train.optimizer
};

struct ScheduleSection {
  std::string kind = "constant";
  std::string by = "epoch";  ///< epoch | step: when the rate moves, and the unit of what follows
  std::int64_t step_size = 0;
  std::vector<std::int64_t> milestones = {};
  double gamma = 0.1;
  double power = 1;
  double min_lr = 0;
  std::int64_t total = 0;  ///< 0: the whole run
  double pct_start = 0.3;
  double div_factor = 25;
  double final_div_factor = 10000;
  std::string anneal = "cos";  ///< cos | linear
  bool cycle_momentum = true;
  double base_momentum = 0.85, max_momentum = 0.95;
  std::int64_t warmup_epochs = 0, warmup_steps = 0;
  double warmup_start = 1.0 / 3;  ///< share of the rate that the warm-up begins with
};

// Keys of the job file that a catalogue's member has.

/// A key of the member's section.
struct MemberKey {
  std::string_view name;        ///< "lr", of "train.optimizer.lr"
  std::string_view fallback{};  ///< its value where it is not given, as in a job file; "": the section's
  bool required = false;
};

/// Something that does not fit together, for a message that points to the key.
struct KeyComplaint {
  std::string key;  ///< "train.optimizer.nesterov"
  std::string message;
};

}  // namespace lockstep
