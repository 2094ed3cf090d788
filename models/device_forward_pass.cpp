// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Forward on a device: stage after stage, from cut to cut.
#include "common/error.hpp"
#include "models/device_execution.hpp"
#include "models/layer.hpp"

namespace lockstep {

float* DeviceExecution::forward_training(Stream& stream, const float* weights, const DevicePass& pass) {
  LOCKSTEP_CHECK(cuts_.empty() && pass.batch > 0);
  begin_training(const_cast<float*>(weights), pass);  // which only cuts write to
  forward_to_cut(stream);
  return logits();
}

float* DeviceExecution::forward_evaluation(Stream& stream, const float* weights, int batch) {
  LOCKSTEP_CHECK(batch > 0 && batch <= max_batch_);
  weights_ = const_cast<float*>(weights);
  pass_ = {.batch = batch};
  training_ = false;
  for (std::size_t i = 0; i < units_.size(); ++i) {
    Unit& unit = units_[i];
    if (const BatchLayer* over_batch = unit.over_batch())
      over_batch->device_use_kept(layer_pass(stream), kept_of(unit), unit.statistics.data());
    forward_stage(stream, i);
  }
  return logits();
}

void DeviceExecution::begin_training(float* weights, const DevicePass& pass) {
  LOCKSTEP_CHECK(pass.batch >= 0 && pass.batch <= max_batch_);
  weights_ = weights;
  pass_ = pass;
  training_ = true;
  next_ = 0;
  terms_added_ = forked_ = false;
}

CutSums DeviceExecution::forward_to_cut(Stream& stream) {
  for (; next_ < units_.size(); ++next_) {
    Unit& unit = units_[next_];
    if (const BatchLayer* over_batch = unit.over_batch()) {
      terms_added_ = !terms_added_;
      if (terms_added_) return queue_sums(stream, next_, true);
      over_batch->finish_device_forward_sums(layer_pass(stream), words_.data(), pass_.batch_samples,
                                             unit.statistics.data());
    }
    if (pass_.batch > 0) forward_stage(stream, next_);
  }
  return {};
}

void DeviceExecution::forward_stage(Stream& stream, std::size_t i) {
  Unit& unit = units_[i];
  const Stage& stage = unit.stage;
  const float* x = input_of(i);
  Epilogue epilogue = training_ ? stage.epilogue : without_dropout(stage.epilogue);
  epilogue.seed = pass_.seed;
  epilogue.first_sample = pass_.first_sample;
  std::uint8_t* mask = training_ ? unit.mask.data() : nullptr;
  if (stage.head == nullptr) {
    ops_.epilogue_forward(stream, stage.input, pass_.batch, x, epilogue, pass_.state, unit.y.data(), mask);
    return;
  }
  stage.head->device_forward(layer_pass(stream), {.weights = weights_of(unit),
                                                  .x = x,
                                                  .branch = branch_of(unit),
                                                  .y = unit.y.data(),
                                                  .saved = unit.mask.data(),
                                                  .epilogue = &epilogue,
                                                  .state = pass_.state,
                                                  .mask = mask,
                                                  .statistics = unit.statistics.data(),
                                                  .zero_bias = zero_bias_.data()});
}

}  // namespace lockstep
