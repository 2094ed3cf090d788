// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// From options and a layout to what the kernels are called with.
#include "trainer/training/weight_update.hpp"

#include "common/error.hpp"
#include "common/text_layout.hpp"
#include "common/yaml.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace lockstep {

namespace {

/// With the decay that every other is a share of: where the optimiser's is 0, a group's largest.
OptimizerSection with_reference_decay(const UpdateOptions& update) {
  OptimizerSection section = update.optimizer;
  if (section.weight_decay > 0) return section;
  for (const GroupSection& group : update.groups)
    section.weight_decay = std::max(section.weight_decay, group.weight_decay.value_or(0));
  return section;
}

/// The first group with this tensor, or null.
const GroupSection* group_of(const UpdateOptions& update, const Parameter& tensor) {
  const auto found = std::ranges::find_if(
      update.groups, [&](const GroupSection& group) { return matches_pattern(group.match, tensor.name); });
  return found == update.groups.end() ? nullptr : &*found;
}

bool is_frozen(const UpdateOptions& update, const Parameter& tensor) {
  return std::ranges::any_of(
      update.freeze, [&](const std::string& pattern) { return matches_pattern(pattern, tensor.name); });
}

float decay_share(const UpdateOptions& update, const OptimizerKind& optimizer, double reference,
                  const GroupSection& group) {
  if (reference == 0) return 1;  // without decay, tensors that are alike stay one range
  const double own = group.weight_decay.value_or(update.optimizer.weight_decay);
  return static_cast<float>(own / reference * (optimizer.decay_has_rate ? group.lr_factor : 1));
}

std::vector<UpdateTensor> tensors_of(const ParameterLayout& layout, const UpdateOptions& update,
                                     const OptimizerKind& optimizer, double reference_decay) {
  std::vector<UpdateTensor> tensors;
  for (const Parameter& parameter : layout.parameters) {
    const bool is_whole = update.optimizer.decay_biases || !parameter.is_bias_or_norm();
    const GroupSection* own = group_of(update, parameter);
    const GroupSection group = own == nullptr ? GroupSection() : *own;
    tensors.push_back({.offset = parameter.offset,
                       .size = parameter.size,
                       .decay = is_whole ? decay_share(update, optimizer, reference_decay, group) : 0,
                       .rate = static_cast<float>(group.lr_factor),
                       .adapts = is_whole,
                       .moves = !is_frozen(update, parameter)});
  }
  return tensors;
}

/// Neighbours that are treated alike become one range, unless the rule wants to see tensors.
std::vector<UpdateTensor> ranges_of(const std::vector<UpdateTensor>& tensors, UpdateRule rule) {
  std::vector<UpdateTensor> ranges;
  for (const UpdateTensor& tensor : tensors) {
    if (!ranges.empty() && !uses_norms(rule) && are_alike(ranges.back(), tensor)) {
      ranges.back().size += tensor.size;
    } else {
      ranges.push_back(tensor);
    }
  }
  return ranges;
}

std::string scaling_text(const OptimizerSection& section, std::int64_t global_batch) {
  const LrScalingSection& scaling = section.lr_scaling;
  if (scaling.rule == LrScalingSection().rule) return "";
  return fmt::format(" ({:g} for a global batch of {}, {} scaling to {})", section.lr, scaling.base_batch,
                     scaling.rule, global_batch);
}

std::string clipping_text(const GradientClip& clip) {
  if (clip.norm > 0) return fmt::format(", gradients clipped to a norm of {:g}", clip.norm);
  if (clip.value > 0) return fmt::format(", gradients clipped to values up to {:g}", clip.value);
  return "";
}

std::string frozen_text(const std::vector<UpdateTensor>& tensors) {
  const auto frozen = std::ranges::count(tensors, false, &UpdateTensor::moves);
  return frozen == 0 ? "" : fmt::format(", {} of {} frozen", frozen, counted(std::ssize(tensors), "tensor"));
}

}  // namespace

WeightUpdate::WeightUpdate(const TrainingOptions& options, const ParameterLayout& layout,
                           std::int64_t steps_per_epoch)
    : scaling_(scaling_text(options.update.optimizer, options.batch.global_batch)),
      section_(with_reference_decay(options.update)),
      optimizer_(find_optimizer(section_)),
      rule_(optimizer_.rule(section_)),
      averages_(options.update, steps_per_epoch),
      names_(optimizer_.buffers(section_)),
      each_(tensors_of(layout, options.update, optimizer_, section_.weight_decay)),
      tensors_(ranges_of(each_, rule_)),
      clip_{.norm = options.update.clip_norm, .value = options.update.clip_value},
      lr_(scaled_lr(options.update.optimizer, options.batch.global_batch)),
      run_{.epochs = options.update.epochs, .steps_per_epoch = steps_per_epoch},
      schedule_(options.update.schedule, lr_, run_) {
  LOCKSTEP_CHECK(static_cast<int>(names_.size()) == buffers_of(rule_));
  names_.insert(names_.end(), averages_.names().begin(), averages_.names().end());
}

StepScalars WeightUpdate::scalars(std::int64_t step) const {
  return optimizer_.scalars(section_, schedule_.at(step), step);
}

std::string WeightUpdate::describe() const {
  return fmt::format("{}, learning rate {:.6g}{}, {}{}{}", section_.kind, lr_, scaling_, schedule_.describe(),
                     clipping_text(clip_), frozen_text(each_));
}

void WeightUpdate::require_warmup_within_run() const {
  if (schedule_.warmup_steps() == 0 || schedule_.warmup_steps() < run_.steps()) return;
  throw OptionError("train.schedule.warmup_steps",
                    fmt::format("{} is not shorter than the run, which has {} (train.epochs: {} of {})",
                                schedule_.warmup_steps(), counted(run_.steps(), "step"), run_.epochs,
                                run_.steps_per_epoch));
}

// Patterns of update.groups and update.freeze.

/// After a failure, the last `*` takes one character more.
bool matches_pattern(std::string_view pattern, std::string_view name) {
  std::size_t p = 0, n = 0, star = pattern.npos, taken = 0;
  while (n < name.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      taken = n;
    } else if (p < pattern.size() && (pattern[p] == '?' || pattern[p] == name[n])) {
      ++p;
      ++n;
    } else if (star != pattern.npos) {
      p = star + 1;
      n = ++taken;
    } else {
      return false;
    }
  }
  return pattern.find_first_not_of('*', p) == pattern.npos;
}

namespace {

/// " (did you mean 'conv1*'?)", and names of tensors.
std::string names_that_match(const ParameterLayout& layout, const std::string& pattern) {
  constexpr std::size_t kMostNamed = 12;
  std::vector<std::string> names;
  for (const Parameter& tensor : layout.parameters) {
    names.push_back(tensor.name);
    names.push_back(tensor.name.substr(0, tensor.name.rfind('.')) + "*");
  }
  const std::vector<std::string_view> candidates(names.begin(), names.end());
  std::string text = did_you_mean(pattern, candidates) + "; there are";
  for (std::size_t i = 0; i < std::min(kMostNamed, layout.parameters.size()); ++i)
    text += (i == 0 ? " " : ", ") + layout.parameters[i].name;
  return text + (layout.parameters.size() > kMostNamed ? ", ..." : "");
}

void require_match(const ParameterLayout& layout, const char* key, const std::string& pattern) {
  const auto matches = [&](const Parameter& tensor) { return matches_pattern(pattern, tensor.name); };
  if (std::ranges::any_of(layout.parameters, matches)) return;
  throw OptionError(key, fmt::format("no tensor of the network has a name like '{}'{}", pattern,
                                     names_that_match(layout, pattern)));
}

}  // namespace

void require_patterns_that_match(const UpdateOptions& update, const ParameterLayout& layout) {
  for (const GroupSection& group : update.groups) {
    require_match(layout, "train.groups", group.match);
    const auto is_of_it = [&](const Parameter& tensor) { return group_of(update, tensor) == &group; };
    if (std::ranges::none_of(layout.parameters, is_of_it))
      throw OptionError(
          "train.groups",
          fmt::format("groups before it take all tensors that '{}' matches, and the first one counts; "
                      "move it up or remove it",
                      group.match));
  }
  for (const std::string& pattern : update.freeze) require_match(layout, "train.freeze", pattern);
  const auto stays = [&](const Parameter& tensor) { return is_frozen(update, tensor); };
  if (!layout.parameters.empty() && std::ranges::all_of(layout.parameters, stays))
    throw OptionError("train.freeze",
                      "all tensors are frozen, and nothing is left to train; remove a pattern");
}

}  // namespace lockstep
