// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Rank 0 looks at the files and shares the work out; ranks, alone or in groups, replay.
#include "trainer/tools/prove.hpp"

#include "comm/agreement.hpp"
#include "common/error.hpp"
#include "common/json_text.hpp"
#include "common/machine.hpp"
#include "common/output.hpp"
#include "common/text_layout.hpp"
#include "data/sampler.hpp"
#include "models/batch_layer.hpp"
#include "trainer/ranks/equal_ranks.hpp"
#include "trainer/ranks/rank_runner.hpp"
#include "trainer/run/data_record.hpp"
#include "trainer/run/run_directory.hpp"
#include "trainer/run/run_state.hpp"
#include "trainer/run/saved_model.hpp"
#include "trainer/setup/strategies.hpp"
#include "trainer/tools/prove_replay.hpp"
#include "trainer/training/weight_update.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <exception>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

namespace lockstep {
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(StartPoint, step, checkpoint)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Interval, start, last, end)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Survey, intervals, bucket_sizes)

namespace {

/// RUN/job.yaml, to be computed on this machine's devices.
Job job_of(const ProveOptions& options) {
  const std::string path = options.run + "/job.yaml";
  if (!Env::posix().exists(path)) throw MissingDataError(why_no_run(Env::posix(), options.run));
  Env::posix().size(path);  // refuses what is not a regular file, and would be waited for
  Job job = load_job(path, {});
  job.run.dir = options.run;
  job.run.resume = "auto";
  job.run.trail = true;
  job.data.per_rank_batch = 0;  // data.global_batch is what came of it
  job.inject = {};
  const ParallelSection then = job.parallel;
  job.parallel = options.parallel;
  job.parallel.determinism = then.determinism;
  job.parallel.grain = then.grain;
  return job;
}

/// Looks first where the run had its data, wherever its job says.
DatasetFuture load_data_of(Job& job, const ProveOptions& options) {
  if (!options.data.empty() && is_made_in_memory(job.data.set))
    throw UsageError(
        fmt::format("--data: this run's set, {}, is made in memory, no directory holds it; leave --data out",
                    job.data.set));
  const std::string remembered = recorded_directory(job);
  if (!options.data.empty() || !remembered.empty())
    job.data.root = options.data.empty() ? "auto" : options.data;
  return load_in_advance(job, DataCopy::kOfHost, options.data.empty() ? remembered : "");
}

/// True if other data explain these differences: a mean and a deviation that were measured change with the data.
bool are_of_data(const std::vector<std::string>& differing, const DataSection& job) {
  const auto is_of_data = [](const std::string& difference) { return difference.starts_with("data."); };
  return std::ranges::any_of(differing, is_of_data) &&
         std::ranges::all_of(differing, [&](const std::string& difference) {
           return is_of_data(difference) || (job.mean.empty() && difference.starts_with("model.mean ")) ||
                  (job.std.empty() && difference.starts_with("model.std "));
         });
}

/// Differences between the trail's head and the job; "": none. @throws DataError  the trail is of a run on other data
std::string head_differences(const Trail& trail, const Job& job, const JobSetup& setup) {
  const auto steps = DistributedSampler::steps_per_epoch(
      {.samples = setup.data->train.size(), .global_batch = job.data.global_batch});
  const WeightUpdate update(setup.options, setup.network.parameters(), steps);
  const auto differing = differences(trail.head(), trail_head(job, setup, update.buffer_names()));
  if (differing.empty()) return "";
  if (!are_of_data(differing, job.data)) return fmt::format("{}", fmt::join(differing, ", "));
  throw DataError(fmt::format(
      "{}: was trained on other data than those found ({}): {}; --data DIR names the place of its own",
      job.run.dir, setup.data->origin, fmt::join(differing, ", ")));
}

/// Gives all ranks the plan of rank 0, which has looked at the files. Collective.
void share_plan(Communicator& comm, Survey& survey) {
  const auto texts = gather_text(comm, comm.rank() == 0 ? json_text(nlohmann::json(survey)) : "");
  if (comm.rank() != 0) survey = parse_json(texts.front()).get<Survey>();
}

/// The group of ranks that this one works in. A group has an interval after another, its ranks share the grains.
struct ReplayGroup {
  std::size_t number = 0, groups = 1;
  bool idle = false;  ///< more ranks than there is work for
};

/// @param most_ranks  that can share a batch
ReplayGroup group_of(const Communicator& comm, std::size_t intervals, std::int64_t most_ranks) {
  const auto size = static_cast<std::size_t>(comm.size()), rank = static_cast<std::size_t>(comm.rank());
  ReplayGroup group;
  group.groups = std::clamp<std::size_t>(intervals, 1, size);
  group.number = rank * group.groups / size;
  const std::size_t first = (group.number * size + group.groups - 1) / group.groups;
  group.idle = static_cast<std::int64_t>(rank - first) >= most_ranks;
  return group;
}

std::vector<Interval> intervals_of(const ReplayGroup& group, const std::vector<Interval>& all) {
  const auto worker_of = share_intervals(all, group.groups);
  std::vector<Interval> intervals;
  for (std::size_t i = 0; i < all.size(); ++i)
    if (worker_of[i] == group.number) intervals.push_back(all[i]);
  return intervals;
}

/// Grains of a full batch.
std::int64_t grains_of(const Job& job, const Trail& trail) {
  const std::int64_t batch =
      std::clamp<std::int64_t>(train_samples_of(trail.head()), 1, job.data.global_batch);
  return (batch - 1) / job.parallel.grain + 1;
}

/// Findings in files, and of the ranks here: they follow from no step, and no step from their result.
constexpr std::string_view kNoResults[] = {"trail", "checkpoint", "manifest", "metrics", "here"};

class Proof {
 public:
  Proof(const ProveOptions& options, const Job& job, const DatasetFuture& data, Communicator& comm)
      : options_(options),
        job_(job),
        data_(data),
        comm_(comm),
        meetings_(comm, std::min(5.0, comm.timeout().count() / 8)) {}

  int run() {
    const auto start = Clock::now();
    expect_equal_ranks(comm_, program_facts("prove", comm_));
    const DeviceChoice device = choose_device(job_.parallel, comm_);
    agree(comm_, [&] { look(device); });
    share_plan(comm_, survey_);
    data_ = await_data(job_, comm_, data_);  // before groups part from each other
    ProofResult mine;
    std::exception_ptr error;
    try {
      mine = replay_mine();
    } catch (const AgreedError&) {  // a group's; one of this rank alone leaves, for its group waits for it
      error = std::current_exception();  // the other groups go on, and this one meets them
    }
    meetings_.wait_for_all();
    agree(comm_, [&] {
      if (error) std::rethrow_exception(error);
    });
    for (const std::string& text : gather_text(comm_, json_text(nlohmann::json(mine))))
      add(survey_.verdict, parse_json(text).get<ProofResult>());
    if (comm_.rank() != 0) return 0;
    judge_together();
    const ProofCircumstances circumstances{.run = options_.run,
                                           .device = device.description,
                                           .ranks = comm_.size(),
                                           .seconds = seconds_since(start)};
    print("{}", options_.json ? json_text_in_ascii(report_json(survey_.verdict, circumstances)) + "\n"
                              : to_text(survey_.verdict, circumstances));
    return survey_.verdict.exit_code();
  }

 private:
  void look(const DeviceChoice& device) {
    std::vector<CheckpointEntry> checkpoints;
    if (comm_.rank() == 0) checkpoints = list_checkpoints(Env::posix(), options_.run);
    trail_.emplace(trail_of(Env::posix(), job_));
    metrics_ = read_claims(Env::posix(), options_.run);
    if (comm_.rank() != 0) return;
    const int classes = facts_of(trail_->head(), "model.")["classes"] == "2" ? 2 : 0;
    survey_ =
        survey_run(job_, {*trail_, metrics_, std::move(checkpoints)}, arithmetic_of(job_, classes, device),
                   why_no_initial_weights(job_), options_.question);
  }

  ProofResult replay_mine() {
    const ReplayGroup group = group_of(comm_, survey_.intervals.size(), grains_of(job_, *trail_));
    const int apart = group.idle ? comm_.rank() + 1 : 0;
    const auto part = comm_.split(static_cast<int>(group.number) * (comm_.size() + 1) + apart);
    ProofResult verdict;
    if (group.idle || survey_.intervals.empty()) return verdict;
    const auto load_network = [this](const Dataset& /*train*/) {
      // The network as the trail has it: the file that the job names may be gone, or another by now.
      CheckpointFacts facts;
      facts.job = facts_of(trail_->head(), "job.");
      facts.model = facts_of(trail_->head(), "model.");
      Network network = recorded_network(facts, options_.run + "/" + kTrailFile);
      // CPUs take it for any network, as nothing of it shows.
      if (!cuts_of(network).empty()) job_.data.micro_batch = 0;
      return network;
    };
    const JobSetup setup = set_up(job_, *part, data_, find_strategy(job_).setup, load_network);
    std::string other_head;
    agree(*part, [&] { other_head = head_differences(*trail_, job_, setup); });
    if (!other_head.empty()) {  // nothing can be replayed by a trail of another network or optimiser
      if (comm_.rank() == 0)
        refute(verdict, survey_.intervals.front().start.step + 1, "trail",
               fmt::format("the head of trail.bin is not that of this job: {}", other_head),
               "trail.bin was changed, or is of another run");
      return verdict;
    }
    const ReplayedRun run{job_, setup, *trail_, metrics_, survey_.bucket_sizes};
    const std::vector<Interval> intervals = intervals_of(group, survey_.intervals);
    std::int64_t steps = 0;
    for (const Interval& interval : intervals) steps += interval.steps().count();
    const std::string what =  // the work of each group is about as long
        group.groups == 1 ? "proving" : fmt::format("proving, part {} of {}", group.number + 1, group.groups);
    ProofProgress progress(comm_.rank() == 0 && !options_.json, what, steps);
    for (const Interval& interval : intervals) {
      const ProofResult of_interval = replay(run, interval, *part, progress, meetings_);
      if (part->rank() == 0) add(verdict, of_interval);
    }
    return verdict;
  }

  /// One flipped bit spoils one interval. Where each begins wrongly, it is no accident.
  void judge_together() {
    auto& findings = survey_.verdict.findings;
    const Discrepancy* first = nullptr;
    for (Discrepancy& finding : findings) {
      if (std::ranges::find(kNoResults, finding.what) != std::end(kNoResults)) continue;
      if (first != nullptr)
        finding.cause = fmt::format("it may follow from step {}: later steps were computed from its result",
                                    with_thousands(first->step));
      else
        first = &finding;
    }
    const auto at_start = std::ranges::count_if(findings, [](const Discrepancy& finding) {
      return finding.first_replayed && finding.what == "gradient";
    });
    if (at_start < 2 || static_cast<std::size_t>(at_start) != survey_.intervals.size()) return;
    for (Discrepancy& finding : findings)
      if (finding.first_replayed)
        finding.cause =
            "it is so after every starting point: another program, other data, or a processor, there or "
            "here, that computes wrongly";
  }

  const ProveOptions& options_;
  Job job_;
  DatasetFuture data_;
  Communicator& comm_;
  ProofMeetings meetings_;
  std::optional<Trail> trail_;
  MetricsClaims metrics_;
  Survey survey_;
};

}  // namespace

int prove(const ProveOptions& options) {
  Job job = job_of(options);
  const DatasetFuture data = load_data_of(job, options);
  return run_on_ranks(options.parallel,
                      [&](Communicator& comm) { return Proof(options, job, data, comm).run(); });
}

}  // namespace lockstep
