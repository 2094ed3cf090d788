// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Messages come before gradients in a pipeline's share: the first number that differs belongs to the rank where it
/// began.
#include "trainer/parallel/pipeline.hpp"
#include "trainer/parallel/stage_links.hpp"
#include "trainer/verify/wrong_rank.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace lockstep {
namespace {

int tag_of(const std::pair<int, int>& link) {
  return StageLinks::tag_of(link.first, link.second);
}

}  // namespace

/// Those of one stage know.
void Pipeline::throw_wrong_sums_of_a_stage(std::int64_t step) {
  std::optional<WrongNumbers> mine;
  try {
    if (const auto error = std::exchange(sums_differ_, {}))
      throw_wrong_sums(*replicas_, *error, step, held_.layout, setup_.processor);
  } catch (const WrongRankError& error) {
    mine = error.numbers();
  }
  throw_on_all(comm_, mine, step);
}

/// The first one of each pipeline in the order of links(): what follows from it may be wrong, too.
void Pipeline::throw_wrong_message(std::int64_t step) const {
  const StageMessages& messages = worker_.messages();
  const auto sent = gather(comm_, std::span<const std::uint64_t>(messages.sent)),
             arrived = gather(comm_, std::span<const std::uint64_t>(messages.arrived));
  const auto who = descriptions(comm_, setup_.processor);
  WrongNumbers numbers{.step = step,
                       .what = "messages between stages are not those that were sent",
                       .help = "look at that host's network, and leave it out if it happens again"};
  std::vector<std::string> found;
  for (int first = 0; first < comm_.size(); first += plan_.width) {
    for (const Link& link : links()) {
      const int sender = first + plan_.rank_of(link.first), receiver = first + plan_.rank_of(link.second);
      if (at(at(sent, sender), tag_of(link)) == at(at(arrived, receiver), tag_of(link))) continue;
      numbers.ranks.push_back(receiver);
      found.push_back(
          fmt::format("what arrived at {} is not {} that {} sent: a link or memory at its end changed it",
                      at(who, receiver), message_name(link), at(who, sender)));
      break;
    }
  }
  if (!found.empty()) numbers.what = all_said(found);
  throw WrongRankError(numbers);
}

std::vector<Pipeline::Link> Pipeline::links() const {
  const int last = plan_.last();
  std::vector<Link> all;
  for (int stage = 0; stage < last; ++stage) all.emplace_back(stage, stage + 1);
  for (int stage = last; stage > 0; --stage) all.emplace_back(stage, stage - 1);
  std::erase_if(all,
                [this](const Link& link) { return plan_.rank_of(link.first) == plan_.rank_of(link.second); });
  return all;
}

std::string Pipeline::message_name(const Link& link) const {
  return fmt::format("the {} of {}", link.first < link.second ? "activations" : "gradients",
                     plan_.describe(link.first));
}

std::vector<int> Pipeline::holders() const {
  std::vector<int> ranks;
  for (const Parameter& tensor : setup_.network.parameters().parameters) {
    const auto holds = [&](const PipelineStage& stage) {
      return stage.arena.offset <= tensor.offset && tensor.offset < stage.arena.offset + stage.arena.size;
    };
    ranks.push_back(std::ranges::find_if(plan_.stages, holds)->rank);
  }
  return ranks;
}

std::vector<ComparedPart> Pipeline::share_parts() const {
  std::vector<ComparedPart> parts;
  for (const Link& link : links()) {
    parts.push_back({message_name(link), plan_.rank_of(link.first)});
    parts.push_back({message_name(link), plan_.rank_of(link.second), true});
  }
  const std::vector<int> ranks = holders();
  const auto& tensors = setup_.network.parameters().parameters;
  for (std::size_t i = 0; i < tensors.size(); ++i)
    parts.push_back({"the gradients of " + tensors[i].name, ranks[i]});
  return parts;
}

SumFingerprints Pipeline::share_of(const SumFingerprints& gradients) const {
  const StageMessages& messages = worker_.messages();
  SumFingerprints parts;
  for (const Link& link : links()) {
    parts.push_back(at(messages.sent, tag_of(link)));
    parts.push_back(at(messages.arrived, tag_of(link)));
  }
  const std::size_t first = parts.size();
  parts.resize(first + setup_.network.parameters().parameters.size());
  for (std::size_t i = 0; i < gradients.size(); ++i) parts[first + held_.tensors[i].number] = gradients[i];
  return parts;
}

}  // namespace lockstep
