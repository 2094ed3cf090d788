// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// A slice's own time is what its inner slices leave of it; advice follows from the largest losses.
#include "common/text_layout.hpp"
#include "trainer/run/step_trace.hpp"
#include "trainer/tools/step_bench.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <functional>
#include <iterator>
#include <map>
#include <sstream>
#include <utility>

namespace lockstep::bench {
namespace {

constexpr int kColumns = 80;
constexpr std::size_t kMostLayers = 5, kMostAdvice = 3;
/// Share of a step below which a loss gets no sentence.
constexpr double kWorthSaying = 0.05;

constexpr std::pair<Work, const char*> kNamed[] = {
    {Work::kForward, "forward"}, {Work::kBackward, "backward"}, {Work::kSums, "gradient sums"},
    {Work::kLoss, "loss"},       {Work::kInput, "input"},       {Work::kUpdate, "update"},
    {Work::kWaiting, "waiting"}};

using Interval = std::pair<std::int64_t, std::int64_t>;

/// Nanoseconds of each slice without those inside it.
std::vector<std::int64_t> own_times(const std::vector<TimeSlice>& slices) {
  std::vector<std::int64_t> own;
  std::vector<std::size_t> open;
  for (std::size_t i = 0; i < slices.size(); ++i) {
    while (!open.empty() && slices[open.back()].end_ns <= slices[i].begin_ns) open.pop_back();
    if (!open.empty()) own[open.back()] -= slices[i].nanoseconds();
    own.push_back(slices[i].nanoseconds());
    open.push_back(i);
  }
  return own;
}

/// Intervals of one kind of work, joined where they overlap.
std::vector<Interval> intervals_of(const Timeline& timeline, Work work) {
  std::vector<Interval> all, joined;
  for (const TimeSlice& slice : timeline.slices())
    if (slice.work == work) all.emplace_back(slice.begin_ns, slice.end_ns);
  std::ranges::sort(all);
  for (const Interval& next : all) {
    if (joined.empty() || next.first > joined.back().second) {
      joined.push_back(next);
    } else {
      joined.back().second = std::max(joined.back().second, next.second);
    }
  }
  return joined;
}

bool begins_in(const std::vector<Interval>& intervals, const TimeSlice& slice) {
  const auto behind = std::ranges::upper_bound(intervals, slice.begin_ns, {}, &Interval::first);
  return behind != intervals.begin() && slice.begin_ns < std::prev(behind)->second;
}

std::int64_t length(const std::vector<Interval>& intervals) {
  std::int64_t sum = 0;
  for (const auto& [begin, end] : intervals) sum += end - begin;
  return sum;
}

std::int64_t overlap(const std::vector<Interval>& a, const std::vector<Interval>& b) {
  std::int64_t sum = 0;
  for (std::size_t i = 0, j = 0; i < a.size() && j < b.size();) {
    sum += std::max<std::int64_t>(0, std::min(a[i].second, b[j].second) - std::max(a[i].first, b[j].first));
    ++(a[i].second < b[j].second ? i : j);
  }
  return sum;
}

}  // namespace

StepShares shares_of(const Timeline& timeline, int threads) {
  StepShares shares;
  shares.steps = std::ranges::count(timeline.slices(), Work::kStep, &TimeSlice::work);
  if (shares.steps == 0) return shares;
  const double step = 1e-9 / static_cast<double>(shares.steps);
  const std::vector<Interval> steps = intervals_of(timeline, Work::kStep);
  shares.seconds = static_cast<double>(length(steps)) * step;
  std::map<std::string, LayerTime> layers;
  for (std::uint32_t track = 0; track < timeline.tracks().size(); ++track) {
    if (!timeline.tracks()[track].is_thread()) continue;
    const std::vector<TimeSlice> slices = slices_of(timeline, track);
    const std::vector<std::int64_t> own = own_times(slices);
    for (std::size_t i = 0; i < slices.size(); ++i) {
      if (!begins_in(steps, slices[i])) continue;
      const double seconds = static_cast<double>(own[i]) * step / threads;
      shares.own[static_cast<std::size_t>(slices[i].work)] += seconds;
      if (slices[i].work == Work::kForward) layers[std::string(slices[i].of)].forward += seconds;
      if (slices[i].work == Work::kBackward) layers[std::string(slices[i].of)].backward += seconds;
    }
  }
  for (const auto& [name, times] : layers) shares.layers.push_back({name, times.forward, times.backward});
  std::ranges::stable_sort(shares.layers, std::greater(),
                           [](const LayerTime& layer) { return layer.forward + layer.backward; });
  const auto sums = intervals_of(timeline, Work::kAllReduce);
  shares.under_way = static_cast<double>(length(sums)) * step;
  shares.hidden =
      shares.under_way - static_cast<double>(overlap(sums, intervals_of(timeline, Work::kWaiting))) * step;
  return shares;
}

double StepShares::rest() const {
  double named = 0;
  for (const auto& [work, name] : kNamed) named += of(work);
  return std::max(0.0, seconds - named);
}

// Advice: each loss with the sentence that lessens it.

namespace {

struct TimeLoss {
  double share;
  std::string advice;
};

void add_waits(const StepSurroundings& around, std::vector<TimeLoss>& losses) {
  if (around.oversubscribed) {
    losses.push_back({std::max(around.skew, kWorthSaying),
                      "fewer ranks on this host: there are more than cores, and those that share one wait "
                      "for each other"});
  } else {
    losses.push_back({around.skew,
                      "ranks of equal speed: this one waits for slower ones; lockstep doctor and the "
                      "slowest_rank of each epoch in metrics.jsonl names them"});
  }
  losses.push_back({around.exposed,
                    "a larger data.global_batch (or fewer ranks): the all-reduce costs the same, and there "
                    "is more backward to hide it under"});
  if (around.buckets == 1)
    losses.push_back(
        {around.exposed / 2,
         "a smaller parallel.bucket_bytes: with one bucket, gradients leave only when backward has ended"});
}

void add_idle(const StepShares& shares, const StepSurroundings& around, std::vector<TimeLoss>& losses) {
  const std::int64_t turns = (around.grains + around.threads - 1) / around.threads * around.threads;
  const double idle = turns == 0 ? 0 : 1 - static_cast<double>(around.grains) / static_cast<double>(turns);
  if (idle > 0)
    losses.push_back({idle, fmt::format("a parallel.threads that divides the {} of a step (or a smaller "
                                        "parallel.grain, a larger batch): {} of {} thread turns have none",
                                        counted(around.grains, "grain"), turns - around.grains, turns)});
  if (const int used = around.local_ranks * around.threads; used < around.cores && around.grains > 1)
    losses.push_back(
        {1 - static_cast<double>(used) / around.cores,
         fmt::format("more ranks or parallel.threads: {} of {} in use, and a step has {} on this rank", used,
                     counted(around.cores, "core"), counted(around.grains, "grain"))});
  losses.push_back({shares.of(Work::kUpdate) / shares.seconds,
                    "a larger data.global_batch: an update costs the same for any batch"});
  losses.push_back({shares.of(Work::kInput) / shares.seconds,
                    "input is gathered on the threads that compute: more parallel.threads share it"});
}

}  // namespace

std::vector<std::string> advice_for(const StepShares& shares, const StepSurroundings& around) {
  std::vector<TimeLoss> losses;
  if (around.ranks > 1) add_waits(around, losses);
  if (shares.seconds > 0) add_idle(shares, around, losses);
  std::erase_if(losses, [](const TimeLoss& loss) { return loss.share < kWorthSaying; });
  std::ranges::stable_sort(losses, std::greater(), &TimeLoss::share);
  if (losses.size() > kMostAdvice) losses.resize(kMostAdvice);
  std::vector<std::string> advice;
  for (const TimeLoss& loss : losses)
    advice.push_back(fmt::format("{} ({:.0f} %)", loss.advice, 100 * loss.share));
  if (advice.empty())
    advice.push_back(fmt::format("nothing stands out: this step is arithmetic, at {:.0f} % of the peak",
                                 100 * around.share_of_peak));
  return advice;
}

namespace {

/// 0: nothing is multiplied there. Layers that run together are joined by plus signs.
double peak_share(const LayerTime& layer, const StepSurroundings& around) {
  double at_peak = 0;
  std::istringstream names(layer.name);
  for (std::string name; std::getline(names, name, '+');) {
    const auto found = around.layer_seconds_at_peak.find(name);
    if (found != around.layer_seconds_at_peak.end()) at_peak += found->second;
  }
  const double seconds = layer.forward + layer.backward;
  return seconds > 0 ? at_peak / seconds : 0;
}

}  // namespace

std::string explanation_text(const StepShares& shares, const StepSurroundings& around) {
  const auto share = [&](double seconds) { return shares.seconds > 0 ? 100 * seconds / shares.seconds : 0; };
  std::string text = fmt::format("Where a step of rank 0 goes (mean of {}, {:.0f} us each):\n",
                                 counted(shares.steps, "step"), shares.seconds * 1e6);
  const auto add = [&](const char* name, double seconds) {
    text += fmt::format("  {:<14} {:>5.1f} % {:>9.1f} us\n", name, share(seconds), seconds * 1e6);
  };
  for (const auto& [work, name] : kNamed)
    if (shares.of(work) > 0) add(name, shares.of(work));
  add("the rest", shares.rest());
  if (around.ranks > 1) {
    text += fmt::format("Of the waiting {:.1f} % of a step is communication, {:.1f} % is for slower ranks.\n",
                        100 * around.exposed, 100 * around.skew);
    text += fmt::format("All-reduces are under way for {:.0f} us, {:.0f} us of it ({:.0f} %) hidden.\n",
                        shares.under_way * 1e6, shares.hidden * 1e6,
                        shares.under_way > 0 ? 100 * shares.hidden / shares.under_way : 0);
  }
  text += fmt::format(
      "Arithmetic runs at {:.0f} % of the peak of a core.\nThe slowest layers, and their shares of the "
      "peak:\n",
      100 * around.share_of_peak);
  for (std::size_t i = 0; i < std::min(kMostLayers, shares.layers.size()); ++i) {
    const LayerTime& layer = shares.layers[i];
    const double of_peak = peak_share(layer, around);
    text +=
        fmt::format("  {:<24} {:>5.1f} %  forward {:.0f} us, backward {:.0f} us{}\n",
                    clip_middle(layer.name, 24), share(layer.forward + layer.backward), layer.forward * 1e6,
                    layer.backward * 1e6, of_peak > 0 ? fmt::format(", at {:.0f} %", 100 * of_peak) : "");
  }
  text += "What would help most:\n";
  for (const std::string& advice : advice_for(shares, around)) text += "  - " + advice + "\n";
  return fold_lines(text, kColumns);
}

nlohmann::ordered_json explanation_json(const StepShares& shares, const StepSurroundings& around) {
  nlohmann::ordered_json works, layers = nlohmann::ordered_json::array();
  for (const auto& [work, name] : kNamed) works[name] = shares.of(work);
  works["the rest"] = shares.rest();
  for (const LayerTime& layer : shares.layers) {
    layers.push_back({{"name", layer.name}, {"forward", layer.forward}, {"backward", layer.backward}});
    if (const double of_peak = peak_share(layer, around); of_peak > 0) layers.back()["peak_share"] = of_peak;
  }
  return {{"steps", shares.steps},
          {"seconds", shares.seconds},
          {"work_seconds", works},
          {"all_reduce_seconds", shares.under_way},
          {"hidden_seconds", shares.hidden},
          {"exposed_share", around.exposed},
          {"skew_share", around.skew},
          {"peak_share", around.share_of_peak},
          {"layers", layers},
          {"advice", advice_for(shares, around)}};
}

}  // namespace lockstep::bench
