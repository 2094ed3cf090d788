// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Blame for a share: the majority is right, and a rank that contradicts itself is not.
#include "comm/agreement.hpp"
#include "comm/thread/thread_ranks.hpp"
#include "common/machine.hpp"
#include "data/batch_loader.hpp"
#include "kernels/numerics/fingerprint.hpp"
#include "tests/support/messages.hpp"
#include "tests/support/prelude.hpp"
#include "trainer/config/job.hpp"
#include "trainer/setup/job_setup.hpp"
#include "trainer/setup/strategies.hpp"
#include "trainer/verify/rank_checks.hpp"
#include "trainer/verify/share_replay.hpp"
#include "trainer/verify/wrong_rank.hpp"

namespace lockstep {
namespace {

const SumFingerprints kRight = {1, 2, 3}, kWrong = {1, 5, 3}, kOther = {9, 2, 3}, kThird = {7, 7, 7};

TEST(ReplayTest, MostAreRightAndARankThatContradictsItselfIsWrong) {
  struct Row {
    std::vector<ShareResult> results;
    bool is_certain;
    std::vector<WrongTeam> wrong;
  };
  const Row rows[] = {
      {{{2, kWrong}, {1, kRight}, {0, kRight}, {1, kRight}, {2, kWrong}}, true, {{2, 1}}},
      {{{0, kWrong}, {1, kRight}, {0, kRight}, {1, kRight}}, true, {{0, 1}}},
      {{{0, kWrong}, {1, kRight}, {0, kWrong}, {1, kRight}}, false, {{0, 1}, {1, 1}}},  // each insists
      {{{0, kWrong}, {1, kRight}, {0, kOther}, {1, kRight}}, true, {{0, 0}}},           // wrong in two ways
      {{{0, kWrong}, {1, kRight}, {0, kOther}, {1, kThird}}, false, {{0, 0}, {1, 0}}},
      {{{0, kWrong}, {1, kRight}, {2, kOther}, {0, kThird}, {2, kOther}}, false, {{0, 0}, {1, 0}, {2, 0}}},
      {{{0, kOther}, {1, kRight}, {2, kRight}, {0, kWrong}, {1, kRight}}, true, {{0, 0}}},
      {{{0, kWrong}, {3, kRight}, {0, kWrong}, {1, kRight}, {2, kOther}, {3, kRight}, {4, kRight}},
       true,
       {{0, 1}, {2, 0}}}};
  for (const Row& row : rows) {
    const ReplayVerdict verdict = judge_share(row.results);
    EXPECT_EQ(verdict.is_certain, row.is_certain) << &row - rows;
    EXPECT_EQ(verdict.wrong, row.wrong) << &row - rows;
  }
}

/// The one error of all ranks; empty where they throw none.
struct Thrown {
  std::string text;
  WrongNumbers numbers;
};
Thrown thrown_by(int ranks, const std::function<void(Communicator&)>& work) {
  std::vector<Thrown> all(static_cast<std::size_t>(ranks));
  run_thread_ranks(ranks, [&](Communicator& comm) {
    try {
      work(comm);
    } catch (const WrongRankError& error) {
      EXPECT_EQ(error.code(), ExitCode::kWrongRank);
      at(all, comm.rank()) = {error.what(), error.numbers()};
    }
  });
  for (const Thrown& one : all) {
    EXPECT_EQ(one.text, all.front().text) << "ranks disagree";
    EXPECT_EQ(one.numbers.ranks, all.front().numbers.ranks);
    EXPECT_EQ(one.numbers.doubt, all.front().numbers.doubt);
  }
  return all.front();
}

const std::vector<ComparedPart> kStateParts = {
    {.name = "a", .kind = "weights"}, {.name = "b", .kind = "weights"}, {.name = "c", .kind = "weights"}};

using Compute = std::function<SumFingerprints(int rank, int share)>;
using OfRank = std::function<SumFingerprints(int rank)>;

/// Statements of ranks when one of them computes, remembers or holds something else.
/// @param members  ranks that compute a share together   @param all  of so many such teams
Thrown said(const Compute& compute, const OfRank& state, const OfRank& samples, int members = 1,
            int all = 4) {
  return thrown_by(all * members, [&](Communicator& comm) {
    const auto teams = comm.split(comm.rank() % members);
    const int team = teams->rank();
    const ReplayWork work{
        .share_parts = {{"the output of a"}, {"the output of a", members - 1, true}, {"the gradients of c"}},
        .state_parts = kStateParts,
        .sample_parts = {{"pictures"}, {"labels", members - 1}},
        .compute_share = [&](int share) { return compute(team, share); },
        .state = [&] { return state(team); },
        .samples = [&](int /*share*/) { return samples(team); }};
    replay_next_share(comm, *teams, compute(team, team), work, 7, "cpu");
  });
}

SumFingerprints share_of(int share) {
  return {static_cast<std::uint64_t>(share), 2, 3};
}

SumFingerprints right(int /*rank*/) {
  return kRight;
}

/// In place `place`, on one of four.
Compute wrong_on(int odd, std::size_t place) {
  return [=](int rank, int share) {
    SumFingerprints sums = share_of(share);
    if (rank == odd) sums[place] += 1;
    return sums;
  };
}

OfRank other_on(int odd) {
  return [odd](int rank) { return rank == odd ? kWrong : kRight; };
}

TEST(ReplayTest, WhatIsAtFaultIsSaid) {
  EXPECT_EQ(said([](int, int share) { return share_of(share); }, right, right).text, "");
  for (int odd = 0; odd < 4; ++odd) {
    const std::string who = fmt::format("step 7: rank {} on {} (cpu): ", odd, host_name()),
                      cure = ". Try this: test that host's memory and processor, and leave it out";
    const Thrown wrong_share = said(wrong_on(odd, 2), right, right),
                 wrong_samples = said(wrong_on(odd, 2), right, other_on(odd)),
                 wrong_state = said(wrong_on(odd, 2), other_on(odd), right);
    EXPECT_EQ(
        wrong_share.text,
        who +
            "it computed the gradients of c differently from other ranks with the same weights and samples: "
            "its processor computed wrongly" +
            cure);
    EXPECT_EQ(wrong_share.numbers.doubt, Doubt::kSinceReplay);
    EXPECT_EQ(wrong_samples.text,
              who + "its training samples are not those of the others: its memory changed them" + cure);
    EXPECT_EQ(wrong_samples.numbers.doubt, Doubt::kSinceStart);
    EXPECT_EQ(wrong_state.text,
              who + "its weights are not those of the others from b on: its memory changed them" + cure);
    EXPECT_EQ(wrong_state.numbers.doubt, Doubt::kNone);
  }
}

TEST(ReplayTest, WhichStepsAreReplayedDoesNotDependOnTime) {
  StepOptions options;
  EXPECT_EQ(steps_between_replays(options, 4, false), 0) << "unless asked for";
  options.replay_every_steps = StepOptions::kAutoReplays;
  EXPECT_EQ(steps_between_replays(options, 4, false), 128);
  EXPECT_EQ(steps_between_replays(options, 4, true), 8192);
  EXPECT_EQ(steps_between_replays(options, 1, false), 0) << "there is no other";
  options.replay_every_steps = 5;
  EXPECT_EQ(steps_between_replays(options, 2, true), 5);
  options.determinism = Determinism::kOff;
  EXPECT_EQ(steps_between_replays(options, 4, false), 0) << "sums are not exact";
}

/// The first number that differs names the rank of a team of two: what follows from it is wrong, too.
TEST(ReplayTest, OfATeamTheRankIsNamedWhereItBegan) {
  const std::string first = said(wrong_on(1, 0), right, right, 2).text,
                    link = said(wrong_on(1, 1), right, right, 2).text,
                    labels = said(wrong_on(3, 0), right, other_on(3), 2).text;
  test::expect_words(first, {"step 7: rank 2 on ", "computed the output of a differently",
                             "Try this: test that host's memory and processor"});
  test::expect_words(link, {"step 7: rank 3 on ", "the output of a arrived changed",
                            "Try this: look at that host's network"});
  test::expect_words(labels, {"step 7: rank 7 on "});
}

/// Five teams of two, of which the second and the fourth are wrong, each in another place.
TEST(ReplayTest, OfSeveralTeamsEachIsNamedForWhatIsItsOwn) {
  const auto name = [](int rank) { return fmt::format("rank {} on {} (cpu): ", rank, host_name()); };
  const auto compute = [](int team, int share) {
    SumFingerprints sums = share_of(share);
    if (team == 1) sums[0] += 1;
    if (team == 3) sums[1] += 1;
    return sums;
  };
  const std::string other = " differently from other ranks with the same weights and samples: ",
                    processor = "its processor computed wrongly; ",
                    link = "the output of a arrived changed: a link or memory at its end changed them",
                    help =
                        ". Try this: test that host's memory and processor, and leave it out; look at that "
                        "host's network, and leave it out if it happens again";
  const Thrown shares = said(compute, right, right, 2, 5);
  EXPECT_EQ(shares.text,
            "step 7: " + name(2) + "it computed the output of a" + other + processor + name(7) + link + help);
  EXPECT_EQ(shares.numbers.ranks, (std::vector{2, 7}));
  const Thrown labels = said(compute, right, other_on(1), 2, 5);
  EXPECT_EQ(labels.text, "step 7: " + name(3) +
                             "its training samples are not those of the others: its memory changed them; " +
                             name(7) + link + help);
  EXPECT_EQ(labels.numbers.ranks, (std::vector{3, 7}));
  const auto state = [](int team) {
    if (team == 1) return kWrong;
    return team == 3 ? kOther : kRight;
  };
  const Thrown states = said(compute, state, right, 2, 5);
  test::expect_words(
      states.text, {name(2) + "its weights are not those of the others from b on: its memory changed them; " +
                    name(6) + "its weights are not those of the others from a on: its memory"});
  EXPECT_EQ(states.numbers.ranks, (std::vector{2, 6}));
}

TEST(ReplayTest, PartsOfARowAreNamedWithTheirKindsAndHolders) {
  ParameterLayout layout;
  layout.parameters = {{.name = "a", .shape = {}, .offset = 0, .size = 0},
                       {.name = "b", .shape = {}, .offset = 0, .size = 0}};
  const auto named = [&](const std::vector<int>& holders) {
    std::string text;
    for (const ComparedPart& part : parts_of_row(layout, {"momentum", "v"}, holders))
      text += fmt::format("{} of {} on {}\n", part.kind, part.name, part.member);
    return text;
  };
  EXPECT_EQ(
      named({3, 1}),
      "summed gradients of a on 3\nsummed gradients of b on 1\nweights of a on 3\nweights of b on 1\n"
      "values of momentum of a on 3\nvalues of momentum of b on 1\nvalues of v of a on 3\nvalues of v of b "
      "on 1\n");
  layout.kept = {{.name = "mean", .shape = {}}};
  EXPECT_EQ(named({}),
            "summed gradients of a on 0\nsummed gradients of b on 0\nweights of a on 0\nweights of b on 0\n"
            "running statistics of mean on 0\nvalues of momentum of a on 0\nvalues of momentum of b on 0\n"
            "values of v of a on 0\nvalues of v of b on 0\n");
}

/// Pictures and labels of a share, byte after byte.
TEST(ReplayTest, FingerprintsOfSamplesAreOfAShareAsItIsInMemory) {
  const TrainTestData data =
      load_dataset({.set = "synthetic", .mean = {0}, .std = {1}, .train_samples = 20, .test_samples = 4});
  DistributedSampler sampler({.samples = 20, .global_batch = 12, .grain = 4, .seed = 7, .world_size = 2});
  sampler.set_epoch(0);
  const auto add = [](std::uint64_t& fingerprint, std::span<const std::byte> bytes) {
    for (const std::byte byte : bytes) fingerprint = mix_bits(fingerprint ^ static_cast<std::uint64_t>(byte));
  };
  for (const int share : {0, 1}) {
    SumFingerprints expected(2);
    for (const Grain& grain : sampler.grains_of(share, 1))
      for (const std::int32_t index : sampler.indices(1, grain)) {
        const ImageRows rows(data.train, {&index, 1});
        const std::int32_t label = data.train.labels[static_cast<std::size_t>(index)];
        add(expected[0], std::as_bytes(rows[0]));
        add(expected[1], std::as_bytes(std::span(&label, 1)));
      }
    EXPECT_EQ(fingerprints_of_samples(data.train, sampler, 1, share), expected) << share;
  }
}

TEST(WrongSumsTest, TheMemoryOrTheLinkOfARankIsNamedWithTheTensor) {
  ParameterLayout layout;
  layout.parameters = {{.name = "a", .shape = {}, .offset = 0, .size = 0},
                       {.name = "b", .shape = {}, .offset = 0, .size = 0}};
  const std::string host = host_name();
  const SumRecord good{.left = {1, 2, 3}, .kept = {1, 2, 3}, .arrived = {3, 6, 9}};
  const auto thrown_with = [&](int odd, const SumRecord& its_record) {
    return thrown_by(3, [&](Communicator& comm) {
      throw_wrong_sums(comm, SumsDifferError(comm.rank() == odd ? its_record : good), 5, layout, "cpu");
    });
  };
  const Thrown memory = thrown_with(1, {.left = {1, 2, 3}, .kept = {1, 7, 3}, .arrived = {3, 6, 9}}),
               link = thrown_with(2, {.left = {1, 2, 3}, .kept = {1, 2, 3}, .arrived = {4, 6, 9}}),
               unknown = thrown_with(0, good);  // a fingerprint itself was hit
  EXPECT_EQ(
      memory.text,
      "step 5: rank 1 on " + host +
          " (cpu) sent other sums of b than it had added up: its memory changed them. Try this: test that "
          "host's memory, and leave it out");
  EXPECT_EQ(memory.numbers.ranks, std::vector{1});
  EXPECT_EQ(
      link.text,
      "step 5: what arrived at rank 2 on " + host +
          " (cpu) is not the sum of a that the ranks sent: a link or memory at its end changed it. Try this: "
          "look at that host's network, and leave it out if it happens again");
  EXPECT_EQ(link.numbers.ranks, std::vector{2});
  EXPECT_EQ(link.numbers.step, 5);
  test::expect_words(unknown.text, {"step 5: what arrived at an unknown rank is not the sum of the step's "
                                    "counters that the ranks sent"});
  EXPECT_TRUE(unknown.numbers.ranks.empty());
}

TEST(WrongNumbersTest, FindingsOfSomeRanksAreThrownOnAll) {
  const Thrown thrown = thrown_by(3, [](Communicator& comm) {
    std::optional<WrongNumbers> mine;
    if (comm.rank() == 1)
      mine = WrongNumbers{.step = 9, .what = "w", .help = "h", .ranks = {2}, .doubt = Doubt::kSinceReplay};
    throw_on_all(comm, mine, 9);
  });
  EXPECT_EQ(thrown.text, "step 9: w. Try this: h");
  EXPECT_EQ(thrown.numbers.ranks, std::vector{2});
  EXPECT_EQ(thrown.numbers.doubt, Doubt::kSinceReplay);
}

/// A part of two ranks, which finds the last one of the whole to be wrong.
TEST(WrongNumbersTest, RanksOfAPartAreThoseOfTheWhole) {
  const Thrown thrown = thrown_by(4, [](Communicator& comm) {
    const auto part = comm.split(comm.rank() / 2);
    std::optional<WrongNumbers> mine;
    if (part->rank() == 0) mine = WrongNumbers{.step = 9, .what = "w", .help = "h", .ranks = {3}};
    throw_on_all(*part, mine, 9);
  });
  EXPECT_EQ(thrown.numbers.ranks, std::vector{3});
}

TEST(WrongNumbersTest, AllFindingsAreSaidAndEachOnce) {
  const Thrown thrown = thrown_by(4, [](Communicator& comm) {
    std::optional<WrongNumbers> mine;
    if (comm.rank() > 0)
      mine = WrongNumbers{
          .step = 9, .what = comm.rank() == 3 ? "v" : "w", .help = "h", .ranks = {comm.rank() == 3 ? 3 : 1}};
    throw_on_all(comm, mine, 9);
  });
  EXPECT_EQ(thrown.text, "step 9: w; v. Try this: h");
  EXPECT_EQ(thrown.numbers.ranks, (std::vector{1, 3}));
}

/// On four ranks, two for each pipeline.
void with_two_pipelines(const std::function<void(ParallelStrategy&, const JobSetup&, Communicator&)>& check) {
  const Job job = parse_job(
      "model: mlp\n"
      "data: {set: synthetic, train_samples: 64, test_samples: 16, global_batch: 16}\n"
      "parallel: {device: cpu, grain: 4, strategy: pipeline, stages: 2}\n",
      "test.yaml", {});
  const DatasetFuture data = load_in_advance(job);
  run_thread_ranks(4, [&](Communicator& comm) {
    const StrategyEntry& entry = find_strategy(job);
    const JobSetup setup = set_up(job, comm, data, entry.setup);
    const std::unique_ptr<ParallelStrategy> strategy = entry.make(setup, comm);
    check(*strategy, setup, comm);
  });
}

/// A message is compared where it left and where it arrived.
TEST(ComparedPartsTest, AMessageOfAPipelineIsOfItsSenderAndOnceMoreOfTheLinkToItsReceiver) {
  with_two_pipelines([](const ParallelStrategy& strategy, const JobSetup& setup, Communicator&) {
    const Teams& teams = strategy.teams();
    std::vector<std::string> messages;
    for (const ComparedPart& part : std::span(teams.share_parts).first(4))
      messages.push_back(fmt::format("{} of {}, {}", part.name.substr(0, part.name.find(" of ")), part.member,
                                     part.arrived ? "arrived" : "sent"));
    EXPECT_EQ(messages,
              (std::vector<std::string>{"the activations of 0, sent", "the activations of 1, arrived",
                                        "the gradients of 1, sent", "the gradients of 0, arrived"}));
    ASSERT_EQ(teams.share_parts.size(), 4 + setup.network.parameters().parameters.size());
    for (std::size_t i = 4; i < teams.share_parts.size(); ++i) EXPECT_FALSE(teams.share_parts[i].arrived);
    EXPECT_EQ(teams.count(), 2);
  });
}

/// Ranks of a pipeline have a part of a row each, and the second pipeline has other numbers.
TEST(RankChecksTest, RowsAreThoseOfTheFirstPipeline) {
  const std::vector<SumFingerprints> parts = {{5, 0}, {0, 6}, {7, 0}, {0, 8}};
  with_two_pipelines([&](ParallelStrategy& strategy, const JobSetup& setup, Communicator& comm) {
    SumFingerprints row = at(parts, comm.rank());
    RankChecks checks(strategy, setup, comm, false);
    const CombinedFingerprints combined = checks.combine(row, row.size(), {});
    EXPECT_EQ(row, (SumFingerprints{5, 6}));
    EXPECT_EQ(combined.apart, (std::vector<std::uint64_t>{7 + 8 - 5 - 6}));
  });
}

/// The fewest that hold copies.
TEST(RankChecksTest, TwoPipelinesCompareTheirStates) {
  with_two_pipelines([](ParallelStrategy& strategy, const JobSetup& setup, Communicator& comm) {
    if (comm.rank() == 0) std::ranges::fill(strategy.whole_state().weights, 0.5F);
    strategy.distribute();
    RankChecks checks(strategy, setup, comm, false);
    EXPECT_NO_THROW(checks.compare_copies(5));
    strategy.visit_own_state([&](const TrainedState& own) {
      if (comm.rank() == 3) own.weights.front() += 1;
      return true;
    });
    EXPECT_THROW(checks.compare_copies(5), WrongRankError);
  });
}

/// A step with room for some grains, and the same gradients whichever they are.
class StepWithRoom final : public ReducedStep {
 public:
  explicit StepWithRoom(std::size_t grains) : room_(grains) {}
  const StepPosition& position() const override { return position_; }
  SumFingerprints own_share() override { return {}; }
  bool has_room_for(std::size_t grains) override { return grains <= room_; }
  SumFingerprints gradients_of(const std::vector<Grain>& /*grains*/) override { return {7, 3}; }

 private:
  std::size_t room_;
  StepPosition position_{};
};

TEST(ShareWeighingTest, SharesAreWeighedWhereAllRanksHaveRoom) {
  const auto sum_on = [](Communicator& comm, std::size_t room) {
    ShareWeighing weighing({{Grain{}}, {Grain{}, Grain{}}}, 1, comm);
    StepWithRoom step(room);
    weighing.before_update(step);
    comm.barrier();
    return weighing.sum();
  };
  run_thread_ranks(2, [&](Communicator& comm) {
    EXPECT_EQ(sum_on(comm, 2), 3U * (rank_weight(0) + rank_weight(1)));
    EXPECT_EQ(sum_on(comm, comm.rank() == 0 ? 2 : 1), std::nullopt);
  });
}

/// Compares the states of groups of `members` that hold copies: kRight on all ranks but those in `wrong`.
std::string said_of_copies(int members, int ranks, const std::map<int, SumFingerprints>& wrong) {
  const Thrown thrown = thrown_by(ranks, [&](Communicator& comm) {
    const auto copies = comm.split(comm.rank() / members);
    const auto mine = wrong.find(comm.rank());
    expect_equal_copies(comm, *copies, mine == wrong.end() ? kRight : mine->second, kStateParts, 1500, "cpu");
  });
  return fmt::format("{}; {} named", thrown.text.substr(0, thrown.text.find(". Try this")),
                     thrown.numbers.ranks.size());
}

TEST(CopiesTest, EqualOnesPassAndOtherwiseRankStepAndFirstTensorAreNamedOnAllRanks) {
  for (const auto& [members, ranks] : {std::pair{1, 1}, {4, 4}, {2, 4}})
    EXPECT_EQ(said_of_copies(members, ranks, {}), "; 0 named");
  const std::string b = "its weights are not those of the others from b on: its memory changed them",
                    a = "its weights are not those of the others from a on: its memory changed them";
  const auto name = [](int rank) { return "rank " + std::to_string(rank) + " on " + host_name() + " (cpu)"; };
  EXPECT_EQ(said_of_copies(4, 4, {{2, kWrong}}), "step 1500: " + name(2) + ": " + b + "; 1 named");
  EXPECT_EQ(said_of_copies(3, 3, {{0, kOther}}), "step 1500: " + name(0) + ": " + a + "; 1 named");
  EXPECT_EQ(said_of_copies(3, 6, {{4, kWrong}}), "step 1500: " + name(4) + ": " + b + "; 1 named");
  EXPECT_EQ(said_of_copies(3, 6, {{1, kWrong}, {5, kOther}}),
            "step 1500: " + name(1) + ": " + b + "; " + name(5) + ": " + a + "; 2 named")
      << "copies of two parts";
  EXPECT_EQ(said_of_copies(7, 7, {{1, kWrong}, {2, kOther}, {4, kWrong}}),
            "step 1500: " + name(1) + " and " + name(4) + ": " + b + "; " + name(2) + ": " + a + "; 3 named");
  EXPECT_EQ(said_of_copies(2, 4, {{3, kWrong}}),
            "step 1500: " + name(2) + " and " + name(3) +
                ": they differ about the weights of b, and each insists: it takes a third rank to tell which "
                "of them is wrong; 2 named");
}

}  // namespace
}  // namespace lockstep
