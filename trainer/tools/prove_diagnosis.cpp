// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// State first, then gradients: a step's inputs are wrong before its results are.
#include "common/text_layout.hpp"
#include "kernels/numerics/fingerprint.hpp"
#include "trainer/tools/prove_replay.hpp"
#include "trainer/tools/prove_result.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <bit>

namespace lockstep {
namespace {

/// One fingerprint of a row, and what it is of.
struct Slot {
  const char* what;      ///< as Discrepancy has it
  const char* name;      ///< in a sentence; of an optimiser's buffer its own name follows
  std::uint32_t buffer;  ///< kernels/numerics/fingerprint.hpp
  std::size_t number;    ///< in the row
  std::size_t tensor;

  bool is_gradient() const { return buffer == kGradientBuffer; }
};

/// Slots in the order of reporting: weights and optimiser state in forward order, gradients in that of
/// backward.
std::vector<Slot> slots_of(const TrailHead& head) {
  const FingerprintLayout layout = head.layout();
  std::vector<Slot> slots;
  for (std::size_t t = 0; t < layout.trained + layout.kept; ++t)
    slots.push_back({"weights", "the weights", kWeightsBuffer, layout.weights(t), t});
  std::uint32_t buffer = kOptimizerBuffer;
  for (std::size_t b = 0; b < layout.buffers; ++b, ++buffer)
    for (std::size_t t = 0; t < layout.trained; ++t)
      slots.push_back({"optimizer", "the optimiser's ", buffer, layout.optimizer(b, t), t});
  for (std::size_t t = layout.trained; t-- > 0;)
    slots.push_back({"gradient", "the summed gradient", kGradientBuffer, layout.gradient(t), t});
  return slots;
}

std::string place_text(const FlippedBit& flipped) {
  return fmt::format("bit {} of element [{}]", flipped.bit, fmt::join(flipped.index, ", "));
}

std::optional<WrongRank> rank_of(const RecordedRanks& ranks, std::optional<int> number) {
  if (!number) return std::nullopt;
  return WrongRank{*number, at(ranks.stretch.ranks, *number)};
}

/// The one rank that holds all tensors of these slots. Of several copies, the first one's.
std::optional<int> holder_of(const RecordedRanks& ranks, const std::vector<Slot>& slots) {
  const auto holds_all = [&](const RankPlace& place) {
    return std::ranges::all_of(
        slots, [&](const Slot& slot) { return place.holds(static_cast<std::int64_t>(slot.tensor)); });
  };
  const auto found = std::ranges::find_if(ranks.stretch.ranks, holds_all);
  if (slots.empty() || found == ranks.stretch.ranks.end()) return std::nullopt;
  return static_cast<int>(found - ranks.stretch.ranks.begin());
}

/// The copies that all ranks would have, if the trail's were right, each times its rank_weight().
std::uint64_t weighted_copies_of(const RecordedRanks& ranks, const TrailRecord& recorded,
                                 const std::vector<Slot>& all) {
  std::uint64_t sum = 0;
  for (std::size_t rank = 0; rank < ranks.stretch.ranks.size(); ++rank)
    for (const Slot& slot : all)
      if (ranks.stretch.ranks[rank].holds(static_cast<std::int64_t>(slot.tensor)))
        sum += rank_weight(static_cast<int>(rank)) * recorded.fingerprints[slot.number];
  return sum;
}

/// Finds the rank whose copy differs from every other rank's. The first copy is in the trail. It is wrong if
/// it differs from the one here, and all others differ from it by the same amount.
/// @param different  slots in which the trail's copy is another than the one here   @param difference  of all of them
std::optional<WrongRank> wrong_copy(const RecordedRanks& ranks, const TrailRecord& recorded,
                                    const std::vector<Slot>& all, const std::vector<Slot>& different,
                                    std::uint64_t difference) {
  const std::size_t size = ranks.stretch.ranks.size();
  const auto copies = static_cast<std::size_t>(
      std::ranges::count_if(ranks.stretch.ranks, [](const RankPlace& place) { return place.holds(0); }));
  if (copies == 1) {  // in a pipeline, gradients may be wrong by what another rank sent
    const bool is_known = size == 1 || (!different.empty() && !different.front().is_gradient());
    return is_known ? rank_of(ranks, holder_of(ranks, different)) : std::nullopt;
  }
  if (recorded.apart == 0) return std::nullopt;
  if (recorded.apart == (1 - copies) * difference) return rank_of(ranks, holder_of(ranks, different));
  if (!ranks.sums) return std::nullopt;
  const std::uint64_t weighted = ranks.sums->copies - weighted_copies_of(ranks, recorded, all);
  return rank_of(ranks, find_wrong_rank(recorded.apart, weighted, size));
}

class StepDiagnosis {
 public:
  StepDiagnosis(const DiagnosisFacts& facts, const TrailRecord& recorded, const ReplayedStep& here,
                const std::optional<RecordedRanks>& ranks)
      : facts_(facts), recorded_(recorded), here_(here), tensors_(facts.parameters.tensors()) {
    for (const Slot& slot : slots_of(facts.trail))
      if (difference(slot) != 0) (slot.is_gradient() ? gradients_ : state_).push_back(slot);
    if (ranks && !ranks->stretch.ranks.empty()) find_wrong_copy(*ranks);
  }

  std::optional<Discrepancy> find() const {
    if (here_.apart != 0) return ranks_here();
    if (state_.empty() && gradients_.empty() && recorded_.apart == 0) return std::nullopt;
    Discrepancy found = !state_.empty()       ? wrong_state()
                        : !gradients_.empty() ? wrong_gradient()
                                              : other_rank();
    found.rank = wrong_copy_;
    return found;
  }

 private:
  /// Finds a wrong copy. A wrong state of rank 0 may spoil the sums of all; a right one, only its own sums.
  void find_wrong_copy(const RecordedRanks& ranks) {
    const std::vector<Slot>& different = state_.empty() ? gradients_ : state_;
    std::uint64_t apart = 0;
    for (const Slot& slot : different) apart += difference(slot);
    wrong_copy_ = wrong_copy(ranks, recorded_, slots_of(facts_.trail), different, apart);
  }
  /// "rank 2 on node3 (cpu (AVX-512))", or else the known part of it.
  std::string named(const char* otherwise) const {
    return wrong_copy_ ? describe(wrong_copy_->number, wrong_copy_->place) : otherwise;
  }

  std::uint64_t difference(const Slot& slot) const {
    return recorded_.fingerprints[slot.number] - here_.fingerprints[slot.number];
  }

  Discrepancy finding(const Slot& slot) const {
    const Parameter& tensor = tensors_[slot.tensor];
    return {.step = here_.step,
            .what = slot.what,
            .parameter = tensor.name,
            .bucket = bucket_of(facts_.bucket_sizes, tensor.offset, facts_.parameters.size),
            .first_replayed = here_.first_replayed};
  }

  std::optional<FlippedBit> flipped_in(const Slot& slot, std::uint64_t difference) const {
    const Parameter& tensor = tensors_[slot.tensor];
    const auto found = find_flipped_bit(difference, {.buffer = slot.buffer,
                                                     .first = tensor.offset,
                                                     .size = tensor.size,
                                                     .bits = slot.is_gradient() ? 64 : 32});
    if (!found) return std::nullopt;
    return FlippedBit{index_of(found->word, tensor.shape), found->bit};
  }

  std::string name_of(const Slot& slot) const {
    if (slot.buffer < kOptimizerBuffer) return slot.name;
    return slot.name + facts_.trail.buffers[slot.buffer - kOptimizerBuffer];
  }

  /// "conv1.weight and 7 others"
  std::string tensors_text(const std::vector<Slot>& slots) const {
    const std::string& first = tensors_[slots.front().tensor].name;
    if (slots.size() == 1) return first;
    return fmt::format("{} and {}", first, counted(slots.size() - 1, "other"));
  }

  Discrepancy wrong_state() const {
    const Slot& slot = state_.front();
    Discrepancy found = finding(slot);
    if (state_.size() == 1) found.flipped = flipped_in(slot, difference(slot));
    if (found.flipped) {
      found.text = fmt::format("{} on {} went into it with {} flipped", name_of(slot), named("rank 0"),
                               place_text(*found.flipped));
      found.cause =
          fmt::format("a flipped bit in the memory of rank {}, before this step and after the one before it",
                      wrong_copy_ ? wrong_copy_->number : 0);
      return found;
    }
    found.text = fmt::format("{} went into it with other values than here (in {})", name_of(slot),
                             tensors_text(state_));
    found.cause =
        here_.first_replayed
            ? fmt::format("this run did not go on from {}, or that was changed afterwards", here_.start)
            : "the update of the step before it was computed wrongly, or memory was overwritten";
    return found;
  }

  Discrepancy wrong_gradient() const {
    const Slot& slot = gradients_.front();
    Discrepancy found = finding(slot);
    if (gradients_.size() == 1) found.flipped = flipped_in(slot, difference(slot));
    if (found.flipped) {
      found.text = fmt::format("the summed gradient had {} flipped", place_text(*found.flipped));
      found.cause = "a flipped bit in the sums of gradients, in a rank's memory or on its way";
      return found;
    }
    found.text =
        fmt::format("the summed gradient differs from the one here (of {})", tensors_text(gradients_));
    if (recorded_.apart != 0) {
      Discrepancy other = other_rank();
      other.text = found.text + "; " + other.text;
      if (other.flipped) return other;
      found.text = other.text;
      found.cause = other.cause;
      return found;
    }
    const bool all = gradients_.size() == facts_.trail.trained.size();
    found.cause =
        all ? "a sample of this step was other data on some rank (a flipped bit, another set), or a "
              "processor computed a forward pass wrongly"
            : fmt::format("a processor computed the backward pass wrongly, up to {}", found.parameter);
    return found;
  }

  /// Rank 0's own are right.
  Discrepancy other_rank() const {
    for (const Slot& slot : slots_of(facts_.trail)) {
      const auto flipped = flipped_in(slot, recorded_.apart);
      if (!flipped) continue;
      Discrepancy found = finding(slot);
      found.flipped = flipped;
      found.text = fmt::format("on {}, {} had {} flipped", named("a rank other than 0"), name_of(slot),
                               place_text(*flipped));
      found.cause = "a flipped bit in the memory of that rank, before this step and after the one before it";
      return found;
    }
    return {.step = here_.step,
            .what = "ranks",
            .text = named("a rank other than 0") +
                    " had other weights, optimiser state or sums than the other ranks",
            .cause = "an update that was computed wrongly there, or memory that was overwritten",
            .first_replayed = here_.first_replayed};
  }

  Discrepancy ranks_here() const {
    return {.step = here_.step,
            .what = "here",
            .text = "the ranks that replay it do not agree with each other",
            .cause = "the memory or a processor of a machine here: prove again on others",
            .first_replayed = here_.first_replayed};
  }

  const DiagnosisFacts& facts_;
  const TrailRecord& recorded_;
  const ReplayedStep& here_;
  std::vector<Parameter> tensors_;
  std::vector<Slot> state_, gradients_;  ///< those that differ
  std::optional<WrongRank> wrong_copy_;
};

}  // namespace

std::optional<Discrepancy> diagnose_step(const DiagnosisFacts& facts, const TrailRecord& recorded,
                                         const ReplayedStep& here,
                                         const std::optional<RecordedRanks>& ranks) {
  return StepDiagnosis(facts, recorded, here, ranks).find();
}

bool is_of_a_share(const Discrepancy& finding, const TrailRecord& recorded) {
  return finding.what == "gradient" && recorded.apart == 0;
}

std::uint64_t sums_apart(const TrailHead& head, const TrailRecord& recorded,
                         std::span<const std::uint64_t> here) {
  std::uint64_t apart = 0;
  for (std::size_t t = 0; t < head.trained.size(); ++t) {
    const std::size_t slot = head.layout().gradient(t);
    apart += recorded.fingerprints[slot] - here[slot];
  }
  return apart;
}

void name_wrong_share(Discrepancy& finding, const RecordedRanks& ranks, std::uint64_t apart,
                      std::uint64_t weighted) {
  if (!ranks.sums) return;
  finding.rank =
      rank_of(ranks, find_wrong_rank(apart, ranks.sums->sums - weighted, ranks.stretch.ranks.size()));
  if (!finding.rank) return;
  finding.cause = fmt::format(
      "{} computed wrong sums from the right weights: from other training samples, or its processor erred",
      describe(finding.rank->number, finding.rank->place));
}

std::optional<Discrepancy> diagnose_state(const DiagnosisFacts& facts, const CheckpointState& checkpoint,
                                          std::span<const float> weights,
                                          const std::vector<std::span<const float>>& optimizer) {
  const auto compare = [&](std::string what, std::span<const float> there,
                           std::span<const float> here) -> std::optional<Discrepancy> {
    for (const Parameter& tensor : facts.parameters.tensors()) {
      if (tensor.offset + tensor.size > there.size()) continue;
      const auto bits_apart = [&](std::size_t i) {
        return std::bit_cast<std::uint32_t>(there[tensor.offset + i]) ^
               std::bit_cast<std::uint32_t>(here[tensor.offset + i]);
      };
      std::size_t count = 0, last = 0;
      for (std::size_t i = 0; i < tensor.size; ++i)
        if (bits_apart(i) != 0) ++count, last = i;
      if (count == 0) continue;
      Discrepancy found{
          .step = checkpoint.facts.step,
          .what = "checkpoint",
          .parameter = tensor.name,
          .text = fmt::format("in its checkpoint, {} of {} {} not what the step left",
                              counted(count, "element"), what, count == 1 ? "is" : "are"),
          .cause =
              "memory was changed after the step and before it was saved; or the checkpoint was "
              "changed, with its checksums",
          .first_replayed = false};
      if (count == 1 && std::has_single_bit(bits_apart(last))) {
        found.flipped = FlippedBit{index_of(last, tensor.shape), std::countr_zero(bits_apart(last))};
        found.text = fmt::format("in its checkpoint, {} of {} is flipped", place_text(*found.flipped), what);
      }
      return found;
    }
    return std::nullopt;
  };
  if (auto found = compare("the weights", checkpoint.weights, weights)) return found;
  for (std::size_t i = 0; i < optimizer.size() && i < checkpoint.optimizer.size(); ++i) {
    const OptimizerBuffer& buffer = checkpoint.optimizer[i];
    if (auto found = compare("the optimiser's " + buffer.name, buffer.values, optimizer[i])) return found;
  }
  return std::nullopt;
}

std::optional<int> bucket_of(std::span<const std::size_t> sizes, std::size_t element,
                             std::size_t parameters) {
  if (element >= parameters) return std::nullopt;
  std::size_t end = parameters;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    if (sizes[i] > end) return std::nullopt;
    end -= sizes[i];
    if (element >= end) return static_cast<int>(i) + 1;
  }
  return std::nullopt;
}

}  // namespace lockstep
