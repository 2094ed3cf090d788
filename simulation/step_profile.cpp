// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// One walk over the layers, as Execution::backward goes.
#include "simulation/step_profile.hpp"

#include "common/error.hpp"
#include "models/backward_ranges.hpp"
#include "models/layer.hpp"

#include <algorithm>

namespace lockstep {

double StepProfile::computing() const {
  double seconds = 0;
  for (const Stretch& stretch : stretches) seconds += stretch.seconds;
  return seconds;
}

StepProfile profile_step(const Network& network, int grain, int grains, double flops_per_second) {
  StepProfile profile;
  const auto seconds = [&](double flops_per_sample) { return flops_per_sample * grain / flops_per_second; };
  for (const BackwardRange& range : backward_ranges(network))
    profile.ranges.push_back({range.offset, range.size, seconds(range.flops)});
  const double all = network.training_flops_per_sample();
  double backward = 0;
  std::size_t done = 0;
  for (std::size_t i = network.layers().size(); i-- > 0;) {
    const Layer& layer = *network.layers()[i];
    if (layer.parameters().empty()) continue;
    const double flops = layer.flops_per_sample();
    const bool first = done + 1 == profile.ranges.size();  // whose input gradient is not needed
    profile.stretches.push_back({seconds(flops), done++});
    if (!first) profile.stretches.push_back({seconds(flops), {}});
    backward += first ? flops : 2 * flops;
  }
  const double before = seconds(all) * (grains - 1) + seconds(all - backward);
  profile.stretches.insert(profile.stretches.begin(), {before, {}});
  return profile;
}

StepProfile with_measured(StepProfile profile, std::span<const double> done) {
  LOCKSTEP_CHECK(done.size() == profile.ranges.size() && std::ranges::is_sorted(done));
  auto first = profile.stretches.begin();
  double before = 0;
  for (std::size_t range = 0; range < done.size(); ++range) {
    auto last =
        std::find_if(first, profile.stretches.end(), [&](const Stretch& s) { return s.done == range; }) + 1;
    double reckoned = 0;
    for (auto stretch = first; stretch != last; ++stretch) reckoned += stretch->seconds;
    const double measured = done[range] - before;
    for (auto stretch = first; stretch != last; ++stretch)
      stretch->seconds =
          reckoned > 0 ? stretch->seconds * measured / reckoned : measured / double(last - first);
    if (range > 0) profile.ranges[range - 1].backward_seconds = measured;
    before = done[range];
    first = last;
  }
  return profile;
}

}  // namespace lockstep
