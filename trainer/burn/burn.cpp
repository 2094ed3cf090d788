// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Rounds: each check works for its share of a round, then all ranks agree whether there is time for another.
#include "trainer/burn/burn.hpp"

#include "comm/agreement.hpp"
#include "common/error.hpp"
#include "common/json_text.hpp"
#include "common/output.hpp"
#include "common/text_layout.hpp"
#include "kernels/cpu/simd_choice.hpp"
#include "trainer/burn/check.hpp"
#include "trainer/ranks/checks.hpp"
#include "trainer/run/stop_signal.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace lockstep::burn {
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(BurnFinding, grade, kind, what, fix)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(LinkView, with, received, damaged, wrong_sums, seconds, bytes, latency)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(RankResult, rank, host, device, uuid, processor, simd, threads,
                                   oversubscribed, exercised, measures, findings, links, answers,
                                   wrong_sums_of_all, wrong_jobs_of_all)

namespace {

struct CheckEntry {
  std::string_view name;
  double share;  ///< fraction of a round
  std::unique_ptr<BurnCheck> (*make)(const BurnRank& rank);
};

constexpr std::array kEntries{CheckEntry{"jobs", 0.8, make_jobs}, CheckEntry{"links", 0.2, make_links}};

struct StartedCheck {
  std::string name;
  double share;
  std::unique_ptr<BurnCheck> check;
};

bool is_left_out(const BurnOptions& options, std::string_view check) {
  return std::ranges::find(options.without, check) != options.without.end();
}

/// Its share of the cores that it may use: of ranks bound to the same cores each takes a part. Collective.
int threads_of(Communicator& comm, const BurnOptions& options) {
  const std::vector<int> cores = look_around(Surroundings::real()).cores;
  const std::string mine = fmt::format("{} {}", comm.host(), fmt::join(cores, ","));
  const auto all = gather_text(comm, mine);
  if (options.threads > 0) return options.threads;
  const auto sharers = std::ranges::count(all, mine);
  return std::max(1, static_cast<int>(static_cast<std::ptrdiff_t>(cores.size()) / sharers));
}

/// The rounds of one rank.
class Burn {
 public:
  Burn(Communicator& comm, const BurnOptions& options)
      : comm_(comm),
        options_(options),
        start_(Clock::now()),
        device_(choose_device(options.parallel, comm)),
        progress_(ProgressBar::Style::kPlain, options.shows_progress && comm.rank() == 0),
        rank_{comm, options_, device_, threads_of(comm, options),
              [this](std::string_view check) { show_progress(check); }} {
    for (const auto& [name, share, make] : kEntries) {
      auto check = is_left_out(options, name) ? nullptr : make(rank_);
      if (check != nullptr) checks_.push_back({std::string(name), share, std::move(check)});
    }
  }

  BurnReport to_the_end() {
    double longest = 0;
    do {
      const auto start = Clock::now();
      one_round();
      longest = std::max(longest, seconds_since(start));
      ++round_;
    } while (all_go_on(longest));
    return report();
  }

 private:
  void show_progress(std::string_view check) {
    if (!progress_.is_due()) return;
    const double passed = progress_.seconds();
    progress_.draw({{"burn", 5},
                    {fmt::format("level {}", options_.level), 1},
                    {fmt::format("round {}", round_ + 1), 2},
                    {std::string(check), 3},
                    {fmt::format("{} left", format_duration(std::max(0.0, options_.seconds - passed))), 4}},
                   std::min(passed / options_.seconds, 1.0));
  }
  void one_round() {
    const double left = options_.seconds - seconds_since(start_);
    const double seconds = std::min({left, options_.seconds / 4, 60.0});
    double all_shares = 0;
    for (const StartedCheck& started : checks_) all_shares += started.share;
    for (const StartedCheck& started : checks_)
      started.check->work(CheckTime(seconds * started.share / all_shares));
  }

  /// Rank 0 looks at the clock, any rank may have been told to stop.
  bool all_go_on(double longest_round) {
    const bool time_is_up = comm_.rank() == 0 && seconds_since(start_) + longest_round > options_.seconds;
    std::array<std::int64_t, 2> answers{time_is_up ? 1 : 0, stop_requested() ? 1 : 0};
    comm_.all_reduce(std::span<std::int64_t>(answers));
    stopped_ = answers[1] > 0;
    return answers[0] == 0 && !stopped_;
  }

  RankResult result_of_this_rank() const {
    RankResult result;
    result.rank = comm_.rank();
    result.host = comm_.host();
    result.device = device_.description;
    if (device_.gpu != nullptr) result.uuid = device_.gpu->device->properties().uuid;
    result.processor = model_of_processor("/");
    result.simd = cpu::simd_name();
    result.threads = rank_.threads;
    result.oversubscribed = comm_.oversubscribed();
    for (const StartedCheck& started : checks_) add_report(started, result);
    return result;
  }

  /// Marks a check without a result as not tested.
  static void add_report(const StartedCheck& started, RankResult& result) {
    started.check->report(result);
    if (result.exercised.contains(started.name)) return;
    result.findings.push_back({Grade::kNotTested, started.name, "it was stopped before this was done",
                               "start it again, with a longer --time"});
  }

  /// Collective.
  BurnReport report() {
    const auto texts = gather_text(comm_, json_text(nlohmann::json(result_of_this_rank())));
    BurnReport report;
    if (comm_.rank() != 0) return report;
    for (const std::string& text : texts) report.ranks.push_back(parse_json(text).get<RankResult>());
    compare_ranks(report.ranks, !is_left_out(options_, "speed"));
    report.level = options_.level;
    report.seconds = seconds_since(start_);
    report.rounds = round_;
    report.left_out = options_.without;
    report.library = comm_.library();
    if (device_.kind == "cuda") report.driver = cuda::platform().versions();
    if (stopped_)
      report.stopped_by = stop_signal() != 0 ? stop_signal_name(stop_signal()) : "a signal to another rank";
    name_what_is_not_exercised(report);
    return report;
  }

  void name_what_is_not_exercised(BurnReport& report) const {
    auto& missing = report.not_exercised;
    for (const std::string& check : options_.without) missing.push_back("--without " + check);
    missing.emplace_back(
        device_.gpu == nullptr ? "a GPU: there is none, or --device cpu"
        : device_.kind != "cuda"
            ? "a GPU: it is emulated"
            : "tensor cores (bf16, fp16, int8), and GPU to GPU but by the gradients of jobs");
    if (comm_.size() == 1) {
      missing.emplace_back("links between ranks: there is one rank");
      missing.emplace_back("its speed beside others: there is one rank");
    } else if (report.hosts() == 1) {
      missing.emplace_back("the network between hosts: there is one host");
    }
    if (comm_.size() == 2)
      missing.emplace_back("the speed of the one link: two ranks have no other to compare it with");
    missing.emplace_back("memory (memtester, gpu-burn and DCGM fill it), disks and file systems");
  }

  Communicator& comm_;
  const BurnOptions options_;
  Clock::time_point start_;
  DeviceChoice device_;
  int round_ = 0;
  bool stopped_ = false;
  ProgressBar progress_;
  BurnRank rank_;
  std::vector<StartedCheck> checks_;
};

}  // namespace

BurnReport run_burn(Communicator& comm, const BurnOptions& options) {
  agree(comm, [&] {
    if (!options.fault.kind.empty() && options.fault.rank >= comm.size())
      throw UsageError(
          fmt::format("--inject: there is no rank {}, only 0 to {}", options.fault.rank, comm.size() - 1));
    if (is_left_out(options, "jobs") && (comm.size() == 1 || is_left_out(options, "links")))
      throw UsageError(fmt::format(
          "--without {} leaves nothing to test: links take several ranks, and speeds are those of "
          "jobs and links",
          fmt::join(options.without, ",")));
  });
  return Burn(comm, options).to_the_end();
}

}  // namespace lockstep::burn
