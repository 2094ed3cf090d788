// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// fuse_layers: one walk over the layers, in which each either joins the last stage or begins another. And
/// what holds between two stages.
#include "models/stages.hpp"

#include "common/error.hpp"
#include "models/device_layer.hpp"
#include "models/layer.hpp"
#include "models/tensor_plan.hpp"

#include <algorithm>
#include <utility>

namespace lockstep {
namespace {

ImageShape pooled(const ImageShape& shape, int pool) {
  return {shape.channels, shape.height / pool, shape.width / pool};
}

int scaling_steps(const Epilogue& epilogue) {
  int steps = 0;
  for (int i = 0; i < epilogue.count; ++i) steps += Epilogue::scales(epilogue.steps[i].kind) ? 1 : 0;
  return steps;
}

class Fuser {
 public:
  std::vector<Stage> fuse(const Network& network, const NetworkPart& part) {
    const std::vector<bool> branches = layers_that_branch(network.layers());
    first_layer_ = part.first;
    for (std::size_t i = part.first; i < std::min(part.last, branches.size()); ++i) {
      add(network.layers()[i]);
      outputs_.push_back(stages_.size());
      if (branches[i] && !stages_.empty()) stages_.back().branches = true;
    }
    check();
    return std::move(stages_);
  }

 private:
  void add(const std::shared_ptr<const Layer>& layer) {
    const DeviceForm form = layer->device_form();
    if (form.as == DeviceForm::As::kNothing) return;
    if (form.as == DeviceForm::As::kEpilogueStep) return join(*layer, form);
    begin(*layer).head = layer;
    const auto from = layer->branch();
    if (!from) return;
    LOCKSTEP_CHECK(*from >= first_layer_);
    stages_.back().branch = outputs_[*from - first_layer_];
  }

  Stage& begin(const Layer& layer) {
    Stage& stage = stages_.emplace_back();
    stage.name = layer.name();
    stage.input = layer.input();
    stage.before_epilogue = stage.output = layer.output();
    return stage;
  }

  /// Adds a step to the last stage's epilogue, or begins another stage.
  void join(const Layer& layer, const DeviceForm& form) {
    if (!can_join(form)) begin(layer).before_epilogue = layer.input();
    Stage& stage = stages_.back();
    stage.epilogue.steps[stage.epilogue.count++] = form.step;
    stage.epilogue.pool = std::max(stage.epilogue.pool, form.pool);
    if (form.pool > 1) stage.output = layer.output();
  }

  bool can_join(const DeviceForm& form) const {
    if (stages_.empty()) return false;
    const Stage& stage = stages_.back();
    const int scaling = scaling_steps(stage.epilogue) + (Epilogue::scales(form.step.kind) ? 1 : 0);
    if (scaling > EpilogueFactors::kMost || stage.branches) return false;
    if (stage.head != nullptr && !stage.head->device_form().takes_epilogue) return false;
    return stage.epilogue.count < Epilogue::kMaxSteps && (form.pool == 1 || stage.epilogue.pool == 1);
  }

  /// Views are in no stage, so neighbours may differ in shape, but never in size. Within a stage an
  /// epilogue leaves what its pool leaves.
  void check() const {
    for (std::size_t i = 0; i < stages_.size(); ++i) {
      const Stage& stage = stages_[i];
      LOCKSTEP_CHECK(stage.output == pooled(stage.before_epilogue, stage.epilogue.pool));
      LOCKSTEP_CHECK(i == 0 || stages_[i - 1].output.features() == stage.input.features());
    }
  }

  std::vector<Stage> stages_;
  std::size_t first_layer_ = 0;
  std::vector<std::size_t> outputs_;  ///< layer of the part → what its output is, as Stage::branch counts
};

}  // namespace

std::vector<Stage> fuse_layers(const Network& network, const NetworkPart& part) {
  return Fuser().fuse(network, part);
}

bool Stage::passes_gradient() const {
  return head == nullptr || head->device_form().passes_gradient;
}

std::size_t Stage::parameter_offset() const {
  return head == nullptr ? 0 : head->parameter_offset();
}

std::size_t Stage::parameter_size() const {
  return head == nullptr ? 0 : head->parameter_size();
}

std::optional<ImageShape> shape_through_epilogue(const Stage& before, const Stage& stage) {
  using StoresThrough = DeviceForm::StoresThrough;
  const StoresThrough stores =
      stage.head == nullptr ? StoresThrough::kNothing : stage.head->device_form().stores_through;
  if (stores == StoresThrough::kNothing || before.branches) return std::nullopt;
  if (stores == StoresThrough::kAnyShape || before.output == stage.input) return before.before_epilogue;
  if (before.epilogue.pool == 1) return stage.input;
  return std::nullopt;
}

Epilogue without_dropout(const Epilogue& epilogue) {
  Epilogue kept = epilogue;
  kept.count = 0;
  for (int i = 0; i < epilogue.count; ++i)
    if (epilogue.steps[i].kind != EpilogueKind::kDropout) kept.steps[kept.count++] = epilogue.steps[i];
  return kept;
}

}  // namespace lockstep
