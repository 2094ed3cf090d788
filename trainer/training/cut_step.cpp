// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Threads meet at every cut, ranks after them; integers are summed, so that no rank's share shows.
#include "trainer/training/cut_step.hpp"

#include "common/error.hpp"
#include "common/machine.hpp"
#include "kernels/cpu/ops.hpp"
#include "kernels/numerics/fingerprint.hpp"
#include "models/layer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <utility>

namespace lockstep {

CutStep::CutStep(const Network& network, Communicator& comm, WorkerPool& pool,
                 std::vector<ThreadContext>& threads, std::size_t most_grains, bool recomputes)
    : network_(network),
      comm_(comm),
      pool_(pool),
      threads_(threads),
      cuts_(cuts_of(network)),
      backward_cuts_(backward_cuts_of(network)),
      statistics_(network) {
  if (!needed()) return;
  for (std::size_t g = threads.size(); g < most_grains; ++g) {
    const ThreadContext& thread = threads[g % threads.size()];
    more_.emplace_back(network, thread.columns, NetworkPart{.recomputes = recomputes});
    more_.back().record_into(comm.activity().timeline());
  }
  labels_.assign(most_grains, std::vector<std::int32_t>(static_cast<std::size_t>(threads.front().columns)));
  for (std::size_t i = 0; i < threads.size(); ++i) words_.emplace_back(most_words(cuts_));
}

template <class Work>
void CutStep::for_each_grain(const std::vector<Grain>& grains, const Work& work) {
  LOCKSTEP_CHECK(grains.size() <= labels_.size());
  pool_.run([&](int index) {
    const auto thread = static_cast<std::size_t>(index), threads = threads_.size();
    std::ranges::fill(words_[thread].span(), 0);
    for (std::size_t g = thread; g < grains.size(); g += threads) {
      Execution& execution = g < threads ? threads_[g].execution : more_[g - threads];
      work(GrainInWork{threads_[thread], execution, labels_[g], grains[g]}, words_[thread].data());
    }
  });
}

const std::int64_t* CutStep::sum_over_ranks(const Cut& cut) {
  const std::span<std::int64_t> sum = words_.front().span().first(cut.over_batch->words());
  for (std::size_t t = 1; t < words_.size(); ++t) add_up(sum, words_[t].span().first(sum.size()), sum);
  own_sums_.push_back(cpu::fingerprint(kGradientBuffer, 0, sum));
  if (sums_ == Sums::kAsBefore) return nullptr;
  if (comm_.size() == 1) return sum.data();
  const auto start = Clock::now();
  comm_.all_reduce(sum);
  waited_ += seconds_since(start);
  return sum.data();
}

double CutStep::run(const std::vector<Grain>& grains, std::int64_t samples, const Calls& calls,
                    GradientReducer& reducer, Sums sums) {
  sums_ = sums;
  waited_ = 0;
  own_sums_.clear();
  forward(grains, samples, calls);
  for_each_grain(grains, [&](const GrainInWork& work, std::int64_t*) { calls.loss(work); });
  backward(grains, samples, reducer);
  return waited_;
}

void CutStep::forward(const std::vector<Grain>& grains, std::int64_t samples, const Calls& calls) {
  bool begun = false;
  for (const Cut& cut : cuts_) {
    for_each_grain(grains, [&](const GrainInWork& work, std::int64_t* words) {
      if (!begun) calls.begin(work, statistics_);
      work.execution.forward_to_cut(words);
    });
    begun = true;
    if (const auto* sum = sum_over_ranks(cut))
      cut.over_batch->finish_forward_sums(sum, samples, statistics_.of(cut.layer));
  }
  for_each_grain(grains,
                 [](const GrainInWork& work, std::int64_t* words) { work.execution.forward_to_cut(words); });
}

void CutStep::backward(const std::vector<Grain>& grains, std::int64_t samples, GradientReducer& reducer) {
  const auto to_cut = [&](const GrainInWork& work, std::int64_t* words) {
    float* gradients = work.thread.gradients.data();
    const GradientReady add = [&](std::size_t offset, std::size_t size, const GradientTerms& terms) {
      reducer.add(offset, size, terms);
    };
    const BetweenLayers poll = [&] { reducer.poll(); };
    work.execution.backward_to_cut({gradients, add, poll}, words);
  };
  std::size_t end = network_.layers().size();
  for (std::size_t i = backward_cuts_.size(); i-- > 0;) {
    const Cut& cut = backward_cuts_[i];
    for_each_grain(grains, to_cut);
    if (grains.empty()) pass_over(reducer, cut.layer + 1, end);
    end = cut.layer + 1;
    if (const auto* sum = sum_over_ranks(cut))
      cut.over_batch->finish_backward_sums(sum, samples, statistics_.of(cut.layer));
  }
  for_each_grain(grains, to_cut);
  if (grains.empty()) pass_over(reducer, 0, end);
}

void CutStep::pass_over(GradientReducer& reducer, std::size_t first_layer, std::size_t last_layer) {
  for (std::size_t i = last_layer; i-- > first_layer;) {
    const Layer& layer = *network_.layers()[i];
    if (!layer.parameters().empty()) reducer.pass_over(layer.parameter_offset(), layer.parameter_size());
  }
}

void CutStep::move_kept(float* weights) {
  float* kept = weights + network_.parameters().size;
  for (const Cut& cut : cuts_)
    cut.over_batch->move_kept(statistics_.of(cut.layer), kept + network_.layers()[cut.layer]->kept_offset());
}

void require_samples_for_cuts(const Network& network, const DistributedSampler::Options& sampling) {
  const std::int64_t rest = sampling.samples % sampling.global_batch;
  const std::int64_t least = rest == 0 ? sampling.global_batch : rest;
  for (const Cut& cut : cuts_of(network)) {
    if (cut.over_batch->least_samples() <= least) continue;
    const Layer& layer = *network.layers()[cut.layer];
    throw OptionError(
        "data.global_batch",
        fmt::format("{} leaves a batch of {} of the {} training samples, and layer {} ({}) needs {} to "
                    "tell how they differ; choose another global batch",
                    sampling.global_batch, least, sampling.samples, layer.name(), layer.describe(),
                    cut.over_batch->least_samples()));
  }
}

void require_no_cuts(const Network& network, std::string_view strategy) {
  const std::vector<Cut> cuts = cuts_of(network);
  if (cuts.empty()) return;
  const Layer& layer = *network.layers()[cuts.front().layer];
  throw OptionError(
      "parallel.strategy",
      fmt::format("layer {} ({}) looks at the whole global batch, of which {} computes a part at a time; "
                  "use parallel.strategy=data",
                  layer.name(), layer.describe(), strategy));
}

}  // namespace lockstep
