// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// MetricsWriter: lines go to an AppendFile.
#include "trainer/run/metrics.hpp"

#include "common/env.hpp"
#include "common/json_text.hpp"

#include <algorithm>
#include <cstddef>
#include <span>

namespace lockstep {

nlohmann::ordered_json step_event(const RunState& state, const StepTotals& totals, double learning_rate) {
  return {{"event", "step"},
          {"epoch", state.position.epoch + 1},
          {"step", state.position.global_step},
          {"loss", totals.loss() / static_cast<double>(totals.samples)},
          {"learning_rate", learning_rate}};
}

nlohmann::ordered_json loss_event(const RunState& state, const LossWindow& window) {
  return {{"event", "loss"},
          {"epoch", state.position.epoch + 1},
          {"step", state.position.global_step},
          {"steps", window.steps},
          {"mean_loss", window.mean()}};
}

nlohmann::ordered_json epoch_event(const RunState& state, double learning_rate, const Evaluation& evaluation,
                                   double train_seconds) {
  return {{"event", "epoch"},
          {"epoch", state.position.epoch + 1},
          {"step", state.position.global_step},
          {"train_loss", state.mean_epoch_loss()},
          {"train_samples", state.epoch_samples},
          {"train_seconds", train_seconds},
          {"learning_rate", learning_rate},
          {"test_loss", evaluation.loss},  // null if not finite
          {"test_accuracy", evaluation.accuracy()},
          {"test_samples", evaluation.samples}};
}

nlohmann::ordered_json end_event(const RunState& state, const Evaluation& evaluation, double seconds) {
  return {{"event", "end"},
          {"step", state.position.global_step},
          {"seconds", seconds},
          {"test_loss", evaluation.loss},  // null if not finite
          {"test_accuracy", evaluation.accuracy()},
          {"test_samples", evaluation.samples}};
}

void add_weights(nlohmann::ordered_json& end, const std::string& sha256,
                 const PublishedComparison& published) {
  end["weights_sha256"] = sha256;
  if (published.same) end["published_hash"] = *published.same;
}

MetricsWriter::MetricsWriter() = default;
MetricsWriter::MetricsWriter(Env& env, const std::string& path) : file_(std::make_unique<AppendFile>(path)) {
  const auto bytes = read_patiently(env, [&] { return env.read(path); });
  lines_ = std::ranges::count(bytes, std::byte{'\n'});
  hash_.update(bytes);
}
MetricsWriter::~MetricsWriter() = default;
MetricsWriter::MetricsWriter(MetricsWriter&&) noexcept = default;
MetricsWriter& MetricsWriter::operator=(MetricsWriter&&) noexcept = default;

void MetricsWriter::write(const nlohmann::ordered_json& event) {
  if (!file_) return;
  const std::string line = json_text(event) + "\n";
  ++lines_;
  hash_.update(std::as_bytes(std::span(line)));
  file_->append(line);  // keeps what it cannot write now
}

CheckpointMetrics MetricsWriter::position() const {
  return {lines_, hex(hash_.so_far())};
}

void MetricsWriter::sync() {
  if (file_) file_->sync();
}

bool MetricsWriter::is_complete() const {
  return !file_ || file_->is_complete();
}

}  // namespace lockstep
