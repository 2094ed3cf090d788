// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// fuse_layers: one walk over the layers, in which each either joins the last stage or begins another. And
/// what holds between two stages.
#include "models/stages.hpp"

#include "common/error.hpp"
#include "models/layer.hpp"

#include <algorithm>
#include <utility>

namespace lockstep {
namespace {

bool is_epilogue_pool(const Pool2dShape& shape) {
  return shape.kernel == 2 && shape.stride == 2 && shape.padding == 0;
}

ImageShape pooled(const ImageShape& shape, int pool) {
  return {shape.channels, shape.height / pool, shape.width / pool};
}

class Fuser {
 public:
  std::vector<Stage> fuse(const Network& network) {
    for (const auto& layer : network.layers()) {
      layer_ = layer.get();
      std::visit([this](const auto& op) { add(op); }, layer_->op());
    }
    check();
    return std::move(stages_);
  }

 private:
  void add(const Conv2dShape& shape) { begin_trained(shape, shape.weight_size()); }
  void add(const LinearShape& shape) { begin_trained(shape, shape.weight_size()); }
  void add(const MaxPoolOp& pool) { add_pool(pool, EpilogueKind::kMaxPool); }
  void add(const AvgPoolOp& pool) { add_pool(pool, EpilogueKind::kAvgPool); }
  void add(const ReluOp& /*relu*/) { join({.kind = EpilogueKind::kRelu}, 1); }
  void add(const DropoutOp& dropout) {
    if (dropout.probability == 0) return;
    join({EpilogueKind::kDropout, dropout.whole_channels, dropout.layer, dropout.probability}, 1);
  }
  void add(const ViewOp& /*view*/) {}

  Stage& begin(StageHead head) {
    Stage stage;
    stage.head = std::move(head);
    stage.input = layer_->input();
    stage.before_epilogue = stage.output = layer_->output();
    return stages_.emplace_back(std::move(stage));
  }

  void begin_trained(StageHead head, std::size_t weight_size) {
    Stage& stage = begin(std::move(head));
    stage.parameter_offset = layer_->parameter_offset();
    stage.weight_size = weight_size;
    stage.bias_size = layer_->parameter_size() - weight_size;
  }

  template <typename Pool>
  void add_pool(const Pool& pool, EpilogueKind kind) {
    if (is_epilogue_pool(pool.shape)) {
      join({.kind = kind}, 2);
    } else {
      begin(pool);
    }
  }

  /// Adds a step to the last stage's epilogue, or begins a stage of its own.
  void join(const EpilogueStep& step, int pool) {
    if (!can_join(pool)) {
      begin(std::monostate{});
      stages_.back().before_epilogue = layer_->input();
    }
    Stage& stage = stages_.back();
    stage.epilogue.steps[stage.epilogue.count++] = step;
    stage.epilogue.pool = std::max(stage.epilogue.pool, pool);
    if (pool > 1) stage.output = layer_->output();
  }

  bool can_join(int pool) const {
    if (stages_.empty()) return false;
    const Stage& stage = stages_.back();
    if (std::holds_alternative<MaxPoolOp>(stage.head) || std::holds_alternative<AvgPoolOp>(stage.head)) {
      return false;
    }
    return stage.epilogue.count < Epilogue::kMaxSteps && (pool == 1 || stage.epilogue.pool == 1);
  }

  /// Views are in no stage, so neighbours may differ in shape, but never in size; and within a stage an
  /// epilogue leaves what its pool leaves.
  void check() const {
    for (std::size_t i = 0; i < stages_.size(); ++i) {
      const Stage& stage = stages_[i];
      LOCKSTEP_CHECK(stage.output == pooled(stage.before_epilogue, stage.epilogue.pool));
      LOCKSTEP_CHECK(i == 0 || stages_[i - 1].output.features() == stage.input.features());
    }
  }

  const Layer* layer_ = nullptr;
  std::vector<Stage> stages_;
};

}  // namespace

std::vector<Stage> fuse_layers(const Network& network) {
  return Fuser().fuse(network);
}

std::optional<ImageShape> shape_through_epilogue(const Stage& before, const Stage& stage) {
  if (std::holds_alternative<LinearShape>(stage.head)) return before.before_epilogue;
  if (!std::holds_alternative<Conv2dShape>(stage.head)) return std::nullopt;
  if (before.output == stage.input) return before.before_epilogue;
  if (before.epilogue.pool == 1) return stage.input;
  return std::nullopt;
}

Epilogue without_dropout(const Epilogue& epilogue) {
  Epilogue kept = epilogue;
  kept.count = 0;
  for (int i = 0; i < epilogue.count; ++i) {
    if (epilogue.steps[i].kind != EpilogueKind::kDropout) kept.steps[kept.count++] = epilogue.steps[i];
  }
  return kept;
}

}  // namespace lockstep
