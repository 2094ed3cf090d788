// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// DeviceStep: kernels of a step in the order of the stream, by pieces if a layer needs the whole batch.
#include "trainer/device/device_step.hpp"

#include "comm/agreement.hpp"
#include "comm/reduce/gradient_reducer.hpp"
#include "common/error.hpp"
#include "kernels/cpu/ops.hpp"
#include "kernels/numerics/fingerprint.hpp"
#include "trainer/training/weight_update.hpp"

#include <algorithm>

namespace lockstep {

namespace {

/// Steps in one launch: a launch costs the host some microseconds, whatever is in it.
constexpr std::size_t kSeries = 8;
/// Nodes in one launch, unless a single step has more. On a napkin, the driver instantiates a graph in 1 to 2 us for
/// each, hence in 4 ms at most, and takes device memory for each. As many kernels run for some milliseconds, so
/// a longer series would save nothing that shows.
constexpr std::size_t kMostNodes = 2048;

}  // namespace

std::uint64_t bytes_gathered_ahead(GraphUse graph, const Network& network, std::int64_t samples,
                                   bool long_steps) {
  constexpr std::uint64_t kMost = std::uint64_t{64} << 20;  // Beside a step with more, a gather is short.
  const std::uint64_t bytes = next_input_bytes(network, samples);
  return graph == GraphUse::kOff || long_steps || bytes > kMost ? 0 : bytes;
}

DeviceStep::DeviceStep(const TrainingSetup& setup, const Gpu& gpu, GraphUse graph, const StepSizes& sizes)
    : gpu_(gpu),
      grain_(setup.options.step.grain),
      seed_(setup.options.seed),
      classes_(setup.network.classes()),
      global_batch_(sizes.global_batch),
      long_(sizes.long_steps),
      gathers_ahead_((gpu_.all_reduce == nullptr || gpu_.all_reduce->on_stream()) &&
                     bytes_gathered_ahead(graph, setup.network, sizes.max_columns, sizes.long_steps) > 0),
      narrow_limit_(narrow_loss_limit(sizes.global_batch * sizes.longest_series)),
      main_(gpu_.device->make_stream(Device::Priority::kHigh)),
      side_(gpu_.device->make_stream()),
      data_(*gpu_.device, *main_, setup.data->train, setup.augment_plan(), sizes.streaming),
      loss_(setup.options, setup.data->train),
      loss_rule_(*gpu_.device, *main_, loss_.rule(), setup.data->train),
      execution_(setup.network, *gpu_.device, *gpu_.ops, sizes.max_columns,
                 DeviceExecution::Purpose::kTraining),
      order_(*gpu_.device, setup.data->train.labels.size()),
      mixes_(*gpu_.device, setup.mixer, order_.size(), static_cast<std::size_t>(sizes.max_columns),
             gathers_ahead_),
      state_(*gpu_.device),
      host_counters_(*gpu_.device, kCounterSlots),
      arena_(whole_network(setup, sizes.steps_per_epoch, sizes.global_grains), gpu_, *main_, state_,
             gpu_.all_reduce.get(), sizes.longest_series),
      timeline_(*gpu_.device),
      next_may_come_(gpu_.device->make_event()),
      next_is_there_(gpu_.device->make_event()) {
  if (gathers_ahead_) execution_.make_room_for_next_input(*gpu_.device);
}

void DeviceStep::record_into(Timeline* timeline) {
  timeline_.record_into(timeline);
  timeline_.name(*main_, "device: main stream");
  timeline_.name(*side_, "device: side stream");
  execution_.record_into(&timeline_);
  arena_.reducer().record_into(&timeline_);
}

std::size_t DeviceStep::pieces() const {
  return arena_.reducer().on_host() ? execution_.cuts() + 1 : 1;
}

void DeviceStep::reduce(const CutSums& cut) {
  if (from_ == CutSumsFrom::kRanks) return arena_.reducer().sum(*main_, cut.words, cut.count);
  const std::size_t number = cuts_passed_++, bytes = cut.count * sizeof(std::int64_t);
  if (number == own_at_cuts_.size()) {
    own_at_cuts_.emplace_back(*gpu_.device, cut.count);
    summed_at_cuts_.emplace_back(*gpu_.device, cut.count);
  }
  main_->copy_on_device(own_at_cuts_[number].data(), cut.words, bytes);
  std::int64_t* summed = summed_at_cuts_[number].data();
  if (from_ == CutSumsFrom::kNotes) return main_->copy_on_device(cut.words, summed, bytes);
  arena_.reducer().sum(*main_, cut.words, cut.count);
  main_->copy_on_device(summed, cut.words, bytes);
}

SumFingerprints DeviceStep::own_cut_sums() {
  SumFingerprints fingerprints;
  for (const DeviceBuffer<std::int64_t>& own : own_at_cuts_) {
    const auto words = download(*main_, own.data(), own.size());
    fingerprints.push_back(cpu::fingerprint(kGradientBuffer, 0, words));
  }
  return fingerprints;
}

void DeviceStep::queue_gradients(const BatchShare& share, CutSumsFrom from, const SeriesPlace& place) {
  from_ = from;
  place_ = place;
  cuts_passed_ = 0;
  for (std::size_t piece = 0; piece < pieces(); ++piece) {
    if (piece > 0) reduce(cut_);
    queue_gradients(share, piece);
  }
  from_ = CutSumsFrom::kRanks;
}

/// A step's samples are gathered beside the gradients of the one before it. They depend on no weights, and the state
/// on the GPU says which step is next. The first step of a series gathers its own.
void DeviceStep::queue_series(const BatchShare& share, int count) {
  const bool ahead = gathers_ahead_ && share.columns > 0 && micro_batches(share) == 1;
  for (int i = 0; i < count; ++i) {
    queue_gradients(share, CutSumsFrom::kRanks,
                    {.has_samples = ahead && i > 0, .gathers_next = ahead && i + 1 < count});
    queue_update();
  }
}

void DeviceStep::queue_gradients(const BatchShare& share, std::size_t piece) {
  const int last = micro_batches(share) - 1;
  LOCKSTEP_CHECK(last == 0 || execution_.cuts() == 0);
  const BatchShare last_part = micro_batch(share, last);
  if (piece == 0) {
    arena_.reducer().begin();
    for (int i = 0; i <= last; ++i) {
      begin_pass(micro_batch(share, i), i * execution_.max_batch());
      if (i < last) queue_to_cut(micro_batch(share, i), Gradients::kMoreToCome);
    }
  }
  const auto go_on = [&] { return queue_to_cut(last_part, Gradients::kComplete); };
  for (cut_ = go_on(); cut_.count > 0 && !arena_.reducer().on_host(); cut_ = go_on()) reduce(cut_);
  if (cut_.count > 0) return execution_.join_side(*main_, *side_);
  if (place_.gathers_next) {
    side_->record(*next_is_there_);
    main_->wait(*next_is_there_);
    execution_.take_next_input();
    mixes_.take_next();
  }
  arena_.reducer().finish(*main_);
}

int DeviceStep::micro_batches(const BatchShare& share) const {
  if (share.columns == 0) return 1;
  return (share.columns + execution_.max_batch() - 1) / execution_.max_batch();
}

BatchShare DeviceStep::micro_batch(const BatchShare& share, int i) const {
  const int begin = i * execution_.max_batch();
  return {.columns = std::min(execution_.max_batch(), share.columns - begin),
          .first = share.first + begin,
          .batch = share.batch};
}

void DeviceStep::queue_gradients_of_others(const BatchShare& share, const RowsOfPart& rows_of) {
  of_others_ = &rows_of;
  queue_gradients(share, CutSumsFrom::kNotes);
  of_others_ = nullptr;
}

StreamedRows DeviceStep::rows_of(const BatchShare& part, int column) {
  SampleRing* const ring = data_.ring();
  if (ring == nullptr) return {};
  return of_others_ == nullptr ? ring->rows_by_state(column) : ring->load_now(*main_, (*of_others_)(part));
}

void DeviceStep::begin_pass(const BatchShare& part, int column) {
  in_backward_ = false;
  const DevicePass pass{.batch = part.columns,
                        .seed = seed_,
                        .first_sample = static_cast<std::uint32_t>(part.first),
                        .state = state_.data(),
                        .grain = grain_,
                        .batch_samples = part.batch,
                        .loss = loss_of(part)};
  execution_.begin_training(arena_.weights(), pass);
  if (part.columns > 0 && !place_.has_samples) queue_gather(*main_, part, column, Batch::kThis);
}

void DeviceStep::queue_gather(Stream& stream, const BatchShare& part, int column, Batch which) {
  const bool is_next = which == Batch::kNext;
  const DeviceSpan span(&timeline_, stream, Work::kInput);
  const SampleSelection selection{
      .order = order_.data(),
      .state = state_.data(),
      .stride = global_batch_,
      .first = part.first,
      .mixes = mixes_.mixes(),
      .second_labels = is_next ? mixes_.next_second_labels() : mixes_.second_labels(),
      .rows = rows_of(part, column),
      .ahead = is_next ? 1 : 0};
  gpu_.ops->gather(stream, part.columns, data_.view(), selection,
                   is_next ? execution_.next_input() : execution_.input(),
                   is_next ? execution_.next_labels() : execution_.labels());
}

CutSums DeviceStep::queue_to_cut(const BatchShare& part, Gradients gradients) {
  if (!in_backward_) {
    const CutSums cut = execution_.forward_to_cut(*main_);
    if (cut.count > 0) return cut;
    if (place_.gathers_next) {  // on the side stream, which has less to do than the main one
      main_->record(*next_may_come_);
      side_->wait(*next_may_come_);
      queue_gather(*side_, part, 0, Batch::kNext);
    }
    execution_.begin_backward(*main_, execution_.logits());
    in_backward_ = true;
  }
  const auto ready = [&](Stream& stream, std::size_t offset, std::size_t size) {
    if (gradients == Gradients::kComplete) arena_.reducer().ready(stream, offset, size);
  };
  return execution_.backward_to_cut(*main_, *side_, arena_.gradient(grain_), ready);
}

std::optional<DeviceLoss> DeviceStep::loss_of(const BatchShare& part) {
  if (part.columns == 0) return std::nullopt;
  return DeviceLoss{.shape = {.batch = part.columns,
                              .samples = part.columns,
                              .classes = classes_,
                              .rule = loss_rule_.rule(),
                              .mixed = mixes_.second_labels()},
                    .target = {.labels = execution_.labels(),
                               .counters = arena_.counters(),
                               .narrow_limit = narrow_limit_,
                               .state = state_.data()}};
}

void DeviceStep::queue_update() {
  const DeviceSpan span(&timeline_, *main_, Work::kUpdate);
  arena_.queue_gradient_norm();
  arena_.queue_update();
  execution_.queue_move_kept(*main_);
}

void DeviceStep::set_order(std::span<const std::int32_t> order, std::span<const SampleMix> mixes) {
  LOCKSTEP_CHECK(order.size() == order_.size());
  main_->copy_to_device(order_.data(), order.data(), order.size_bytes());
  mixes_.queue(*main_, mixes);
  main_->synchronize();
}

void DeviceStep::queue_state_to_device(const StepState& state) {
  if (data_.ring() != nullptr) data_.ring()->begin(state.step);
  state_.queue_to_device(*main_, state);
  arena_.queue_zero_rows();
}

void DeviceStep::queue_counters_to_host() {
  main_->copy_to_host(host_counters_.data(), arena_.counters(), host_counters_.bytes());
}

void DeviceStep::queue_state_to_host() {
  state_.queue_to_host(*main_);
  arena_.queue_rows_to_host();
}

// A shape of batch is run directly once, captured the second time, and launched in series from then on.

/// Records what `queue` queues, as a graph. Where it throws, the capture ends too: until then the thread could not
/// even free memory.
template <typename Queue>
std::unique_ptr<Graph> StepGraphs::record(const Queue& queue) {
  Stream& stream = step_.stream();
  stream.begin_capture();
  try {
    queue();
  } catch (...) {
    try {
      stream.end_capture();
    } catch (const Error&) {  // says that the capture is incomplete
    }
    throw;
  }
  return stream.end_capture();
}

void StepGraphs::queue(const BatchShare& share, std::int64_t count) {
  if (use_ == GraphUse::kOff) {
    for (; count > 0; --count) queue_directly(share);
    return;
  }
  auto captured = std::ranges::find(captured_, share, &Captured::share);
  if (captured == captured_.end()) {
    queue_directly(share);
    captured = captured_.emplace(captured_.end());
    captured->share = share;
    --count;
  }
  if (count > 0 && captured->step == nullptr && captured->gradients.empty()) capture(*captured);
  launch(*captured, count);
}

void StepGraphs::queue_directly(const BatchShare& share) {
  step_.queue_gradients(share);
  if (step_.arena().reducer().on_host()) step_.arena().reducer().reduce(step_.stream());
  step_.queue_update();
}

void StepGraphs::capture(Captured& captured) {
  if (!step_.arena().reducer().on_host()) {
    captured.step = record([&] { step_.queue_series(captured.share, 1); });
    if (step_.is_long()) return;
    // NCCL wants the same captures of all ranks, one of which may have no samples.
    const std::size_t nodes = std::ranges::max(gather(comm_, captured.step->nodes()));
    captured.steps_of_series = static_cast<int>(std::min(kSeries, kMostNodes / nodes));
    if (captured.steps_of_series > 1)
      captured.series = record([&] { step_.queue_series(captured.share, captured.steps_of_series); });
    return;
  }
  for (std::size_t piece = 0; piece < step_.pieces(); ++piece) {
    captured.gradients.push_back(record([&] { step_.queue_gradients(captured.share, piece); }));
    captured.cuts.push_back(step_.cut());
  }
  captured.update = record([&] { step_.queue_update(); });
}

void StepGraphs::launch(Captured& captured, std::int64_t count) {
  Stream& stream = step_.stream();
  if (!captured.gradients.empty()) {
    for (; count > 0; --count) {
      for (std::size_t piece = 0; piece < captured.gradients.size(); ++piece) {
        if (piece > 0) step_.reduce(captured.cuts[piece - 1]);
        stream.launch(*captured.gradients[piece]);
      }
      step_.arena().reducer().reduce(stream);
      stream.launch(*captured.update);
    }
    return;
  }
  const int steps = captured.steps_of_series;
  for (; captured.series && count >= steps; count -= steps) stream.launch(*captured.series);
  for (; count > 0; --count) stream.launch(*captured.step);
}

}  // namespace lockstep
