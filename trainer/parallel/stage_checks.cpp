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

void StageChecks::append_to(std::vector<std::int64_t>& numbers) const {
  numbers.push_back(sums_differ_ ? 1 : 0);
  const StageMessages& messages = parts_.worker.messages();
  for (std::size_t link = 0; link < messages.sent.size(); ++link)
    numbers.push_back(static_cast<std::int64_t>(messages.sent[link] - messages.arrived[link]));
}

void StageChecks::expect_right(std::span<const std::int64_t> summed, std::int64_t step) {
  if (summed.front() > 0) throw_wrong_sums_of_a_stage(step);
  if (std::ranges::any_of(summed, [](std::int64_t apart) { return apart != 0; })) throw_wrong_message(step);
}

/// Those of one stage know.
void StageChecks::throw_wrong_sums_of_a_stage(std::int64_t step) {
  std::optional<WrongNumbers> mine;
  try {
    if (const auto error = std::exchange(sums_differ_, {}))
      throw_wrong_sums(parts_.replicas, *error, step, parts_.held.layout, parts_.setup.processor);
  } catch (const WrongRankError& error) {
    mine = error.numbers();
  }
  throw_on_all(parts_.comm, mine, step);
}

/// The first one in the order of links(): what follows from it may be wrong, too.
void StageChecks::throw_wrong_message(std::int64_t step) const {
  const StageMessages& messages = parts_.worker.messages();
  const auto sent = gather(parts_.comm, std::span<const std::uint64_t>(messages.sent)),
             arrived = gather(parts_.comm, std::span<const std::uint64_t>(messages.arrived));
  const auto who = descriptions(parts_.comm, parts_.setup.processor);
  WrongNumbers numbers{.step = step,
                       .what = "messages between stages are not those that were sent",
                       .help = "look at that host's network, and leave it out if it happens again"};
  for (int first = parts_.comm.size() - parts_.plan.width; first >= 0; first -= parts_.plan.width) {
    for (const Link& link : links()) {
      const int sender = first + parts_.plan.rank_of(link.first),
                receiver = first + parts_.plan.rank_of(link.second);
      if (at(at(sent, sender), tag_of(link)) == at(at(arrived, receiver), tag_of(link))) continue;
      numbers.ranks = {receiver};
      numbers.what =
          fmt::format("what arrived at {} is not {} that {} sent: a link or memory at its end changed it",
                      at(who, receiver), message_name(link), at(who, sender));
      break;
    }
  }
  throw WrongRankError(numbers);
}

/// Between ranks, in the order in which a micro-batch passes them.
std::vector<StageChecks::Link> StageChecks::links() const {
  const int last = parts_.plan.last();
  std::vector<Link> all;
  for (int stage = 0; stage < last; ++stage) all.emplace_back(stage, stage + 1);
  for (int stage = last; stage > 0; --stage) all.emplace_back(stage, stage - 1);
  std::erase_if(all, [this](const Link& link) {
    return parts_.plan.rank_of(link.first) == parts_.plan.rank_of(link.second);
  });
  return all;
}

/// "the activations of stage 0 (conv1 to relu1)"
std::string StageChecks::message_name(const Link& link) const {
  return fmt::format("the {} of {}", link.first < link.second ? "activations" : "gradients",
                     parts_.plan.describe(link.first));
}

std::vector<int> StageChecks::holders() const {
  std::vector<int> ranks;
  for (const Parameter& tensor : parts_.setup.network.parameters().parameters) {
    const auto holds = [&](const PipelineStage& stage) {
      return stage.arena.offset <= tensor.offset && tensor.offset < stage.arena.offset + stage.arena.size;
    };
    ranks.push_back(std::ranges::find_if(parts_.plan.stages, holds)->rank);
  }
  return ranks;
}

std::vector<ComparedPart> StageChecks::share_parts() const {
  std::vector<ComparedPart> parts;
  for (const Link& link : links()) {
    parts.push_back({message_name(link), parts_.plan.rank_of(link.first)});
    parts.push_back({message_name(link), parts_.plan.rank_of(link.second), true});
  }
  const std::vector<int> ranks = holders();
  const auto& tensors = parts_.setup.network.parameters().parameters;
  for (std::size_t i = 0; i < tensors.size(); ++i)
    parts.push_back({"the gradients of " + tensors[i].name, ranks[i]});
  return parts;
}

SumFingerprints StageChecks::share(const SumFingerprints& gradients) const {
  const StageMessages& messages = parts_.worker.messages();
  SumFingerprints parts;
  for (const Link& link : links()) {
    parts.push_back(at(messages.sent, tag_of(link)));
    parts.push_back(at(messages.arrived, tag_of(link)));
  }
  const std::size_t first = parts.size();
  parts.resize(first + parts_.setup.network.parameters().parameters.size());
  for (std::size_t i = 0; i < gradients.size(); ++i)
    parts[first + parts_.held.tensors[i].number] = gradients[i];
  return parts;
}

}  // namespace lockstep
