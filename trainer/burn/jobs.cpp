// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Trainings of known outcome: digits drawn in memory, and weights whose SHA-256 is known for every
/// processor. Each rank trains alone, then all ranks train together: as one, or in teams where they are many.
#include "comm/agreement.hpp"
#include "common/text_layout.hpp"
#include "trainer/burn/check.hpp"
#include "trainer/checkpoint/state.hpp"
#include "trainer/ranks/checks.hpp"
#include "trainer/run/stop_signal.hpp"
#include "trainer/setup/strategies.hpp"
#include "trainer/training/data_parallel.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <numeric>

namespace lockstep::burn {
namespace {

/// A training, and what it ends in: that of `lockstep train mnist data.set=synthetic data.train_samples=SAMPLES
/// model=MODEL train.epochs=EPOCHS`.
struct KnownJob {
  const char* model;
  int samples, epochs;
  const char* weights;

  std::string name() const { return fmt::format("{} on {} digits", model, with_thousands(samples)); }
};

constexpr std::array kJobs{
    KnownJob{"linear", 1000, 1, "4af324d4247b27fb9f214aa25912d2818b0922a193788457b0ebd240273a67ac"},
    KnownJob{"net", 2000, 2, "a9311f0d842e584f3a0da897b23783120d37b27c0d9f28343a2c0c4aa70d6177"},
    KnownJob{"lenet", 2000, 2, "0867ed0dcafe9637e24f74151f5a1f272b96a299ffcae2d0035ddd90afe1d786"},
    KnownJob{"resnet8", 2000, 1, "91d580427de58de4f63508f4c5711657de361b535e00139d0f1b109f0ca3585b"}};
constexpr int kBatch = 512;         ///< samples of a step, over all ranks
constexpr double kTimesBefore = 8;  ///< one takes hardly more than so many times as long as the one before it

Job job_of(const KnownJob& known) {
  return parse_job(
      fmt::format("model: {}\n"
                  "data: {{set: synthetic, train_samples: {}, test_samples: 200, global_batch: {}}}\n"
                  "train:\n"
                  "  epochs: {}\n"
                  "  optimizer: {{kind: sgd, lr: 0.08, momentum: 0.9, nesterov: true}}\n"
                  "run: {{trail: false}}\n",
                  known.model, known.samples, kBatch, known.epochs),
      "burn");
}

/// Time that this thread waited for a core, as the kernel counts it; 0 where it does not.
double waited_seconds() {
  std::ifstream schedstat("/proc/thread-self/schedstat");
  double computed = 0, waited = 0;
  schedstat >> computed >> waited;
  return 1e-9 * waited;
}

/// One of the trainings, ready to be taken again and again on the ranks of a communicator.
class PreparedJob {
 public:
  PreparedJob(const Job& job, Communicator& comm)
      : job_(job), comm_(comm), setup_(set_up(job, comm, load_in_advance(job))) {}

  /// Collective. @returns on rank 0 of the communicator the SHA-256 of the weights; empty: it was stopped
  std::string train(bool spoilt) {
    const auto strategy = make_data_parallel(setup_, comm_);
    check_ranks(*strategy, setup_, comm_);
    const std::span<float> weights = strategy->whole_state().weights;
    setup_.network.initialise(job_.train.seed, weights, job_.train.initial_scale);
    if (spoilt) ++weights.front();
    strategy->distribute();
    const std::int64_t of_epoch = strategy->sampler().steps_per_epoch(), steps = of_epoch * job_.train.epochs;
    for (std::int64_t step = 0; step < steps;) {
      if (comm_.size() == 1 && stop_requested()) return "";
      const std::int64_t count = std::min(of_epoch - step % of_epoch, strategy->longest_series());
      const StepSeries series = strategy->run({step / of_epoch, step % of_epoch, step}, count, false);
      if (series.failure || series.steps == 0) return "a step that cannot be taken";
      step += series.steps;
    }
    strategy->collect();
    return comm_.rank() == 0 ? weights_sha256(strategy->whole_state().weights) : "";
  }

 private:
  Job job_;
  Communicator& comm_;
  JobSetup setup_;
};

class Jobs final : public BurnCheck {
 public:
  /// A batch has a grain for each of eight ranks; more of them train in teams. Neighbours are in different teams, so
  /// that hosts exchange gradients.
  explicit Jobs(const BurnRank& rank) : rank_(rank), alone_(rank.comm.split(rank.comm.rank())) {
    const int most = kBatch / ParallelSection().grain, teams = (rank.comm.size() + most - 1) / most;
    if (teams > 1) team_ = rank.comm.split(rank.comm.rank() % teams);
  }

  void work(const CheckTime& slice) override {
    for (std::size_t i = 0; i < kJobs.size() && is_time_for(i, slice); ++i) {
      auto start = Clock::now();
      agree(rank_.comm, [&] {  // one that cannot train is named, and no other waits for it
        for (int more = i == 0 && is_timed() ? kMoreTries : 0; more > 0; --more) train_alone(i);
        start = Clock::now();
        train_alone(i);
      });
      train_together(i);
      seconds_[i] = seconds_since(start);
      rank_.tick("jobs");
    }
  }

  void report(RankResult& result) const override {
    if (trained_ == 0) return;
    result.exercised["jobs"] = fmt::format(
        "{} alone and {} by {} together, up to {}", counted(trained_, "training"), together_trained_,
        team_ == nullptr ? "all ranks" : counted(team_->size(), "rank"), kJobs[largest_].name());
    if (wrong_ > 0)
      result.findings.push_back(
          {Grade::kWrong, "job",
           fmt::format("{} of {} alone ended in other weights; the first: {}", with_thousands(wrong_),
                       counted(trained_, "training"), first_wrong_),
           "take this processor out of service; compare 'lockstep --version --verbose' with that of other "
           "hosts first"});
    result.answers = answers_;
    result.wrong_jobs_of_all = wrong_together_;
    if (!is_timed() || was_stopped_) return;  // ranks are compared by the same trainings
    result.measures["training"] = std::accumulate(best_.begin(), best_.end(), 0.0);
    if (is_on_cpu()) result.measures["share of core"] = computed_ / (computed_ + waited_);
  }

 private:
  /// As rank 0 says. There always is for the first one. Collective.
  bool is_time_for(std::size_t job, const CheckTime& slice) const {
    bool fits = job == 0 ||
                (seconds_[job] > 0 ? seconds_[job] : kTimesBefore * seconds_[job - 1]) < slice.seconds_left();
    broadcast(rank_.comm, fits);
    return fits;
  }

  void train_alone(std::size_t i) {
    auto& prepared = alone_jobs_[i];
    if (prepared == nullptr) prepared = std::make_unique<PreparedJob>(on_this_rank(kJobs[i]), *alone_);
    const auto began = Clock::now();
    const double computed = thread_seconds(), waited = waited_seconds();
    // On CPUs in processor time, since other programs may share the cores.
    const auto seconds = [&] { return is_on_cpu() ? thread_seconds() - computed : seconds_since(began); };
    const std::string weights = prepared->train(rank_.commits("job"));
    was_stopped_ = weights.empty();
    if (was_stopped_) return;
    const double taken = seconds();
    while (rank_.commits("slow-rank") && seconds() < 5 * taken) {
    }
    keep_quickest(best_[i], seconds());
    computed_ += thread_seconds() - computed;
    waited_ += waited_seconds() - waited;
    ++trained_;
    largest_ = std::max(largest_, i);
    answers_[kJobs[i].name()] = weights;
    if (weights == kJobs[i].weights) return;
    if (wrong_++ == 0)
      first_wrong_ = fmt::format("{}: {} in place of {}", kJobs[i].name(), weights, kJobs[i].weights);
  }

  bool is_on_cpu() const { return rank_.device.gpu == nullptr; }
  bool is_timed() const { return rank_.device.kind != "emulated"; }

  /// Collective. An error of one team ends the burn of all.
  void train_together(std::size_t i) {
    if (team_ != nullptr)
      agree(rank_.comm, [&] { train_in(*team_, i); });
    else if (rank_.comm.size() > 1)
      train_in(rank_.comm, i);
  }

  void train_in(Communicator& comm, std::size_t i) {
    auto& prepared = together_jobs_[i];
    if (prepared == nullptr) prepared = std::make_unique<PreparedJob>(on_all_ranks(kJobs[i]), comm);
    const std::string weights = prepared->train(false);
    ++together_trained_;
    bool is_wrong = weights != kJobs[i].weights;  // rank 0 has them
    broadcast(comm, is_wrong);
    if (is_wrong) ++wrong_together_;
  }

  Job on_all_ranks(const KnownJob& known) const {
    Job job = job_of(known);
    job.parallel.device = rank_.device.kind;
    job.parallel.backend = rank_.options.parallel.backend;
    job.parallel.threads = rank_.threads;
    return job;
  }
  /// A rank alone has no neighbours, of whom it could tell which GPU is its own.
  Job on_this_rank(const KnownJob& known) const {
    Job job = on_all_ranks(known);
    job.parallel.backend = "auto";
    if (job.parallel.device == "cuda")
      job.parallel.device = fmt::format("cuda:{}", rank_.device.gpu->device->properties().index);
    return job;
  }

  static constexpr int kMoreTries = 7;  ///< repeats the first training, which takes milliseconds

  const BurnRank rank_;
  std::unique_ptr<Communicator> alone_, team_;  ///< team_: null where all are in one
  std::array<std::unique_ptr<PreparedJob>, kJobs.size()> alone_jobs_, together_jobs_;
  std::array<double, kJobs.size()> seconds_{}, best_{};  ///< best_: of the quickest alone
  double computed_ = 0, waited_ = 0;                     ///< seconds of all trainings alone
  bool was_stopped_ = false;
  std::int64_t trained_ = 0, together_trained_ = 0, wrong_ = 0, wrong_together_ = 0;
  std::size_t largest_ = 0;
  std::string first_wrong_;
  std::map<std::string, std::string> answers_;
};

}  // namespace

std::unique_ptr<BurnCheck> make_jobs(const BurnRank& rank) {
  return std::make_unique<Jobs>(rank);
}

}  // namespace lockstep::burn
