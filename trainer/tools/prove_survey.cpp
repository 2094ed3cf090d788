// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Nothing is computed here: what the files say, and whether they say it of one run.
#include "common/digest.hpp"
#include "common/error.hpp"
#include "common/text_layout.hpp"
#include "common/yaml.hpp"
#include "data/sampler.hpp"
#include "trainer/checkpoint/checkpoint.hpp"
#include "trainer/checkpoint/directory.hpp"
#include "trainer/checkpoint/metrics_reader.hpp"
#include "trainer/config/job_schema.hpp"
#include "trainer/run/run_state.hpp"
#include "trainer/tools/prove.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string_view>
#include <utility>

namespace lockstep {
namespace {

/// Lists the differences of two lists of keys; a key in only one of them is younger than the other.
std::vector<std::string> differing(std::map<std::string, std::string> then,
                                   std::map<std::string, std::string> now) {
  std::erase_if(then, [&](const auto& entry) { return !now.contains(entry.first); });
  std::erase_if(now, [&](const auto& entry) { return !then.contains(entry.first); });
  return differing_keys(then, now);
}

/// Nothing where the trail does not say of how many samples.
std::optional<DistributedSampler> sampler_of(const Job& job, const TrailHead& head) {
  const std::int64_t samples = train_samples_of(head);
  if (samples == 0) return std::nullopt;
  return DistributedSampler({.samples = samples,
                             .global_batch = std::min(samples, job.data.global_batch),
                             .grain = job.parallel.grain});
}

std::int64_t most_steps_of(const Job& job, const std::optional<DistributedSampler>& sampler) {
  return sampler ? steps_asked(job, sampler->steps_per_epoch()) : kMostTrailSteps;
}

class Surveyor {
 public:
  Surveyor(const Job& job, const RunFiles& files, Arithmetic arithmetic, const ProofRequest& question)
      : job_(job),
        trail_(files.trail),
        metrics_(files.metrics),
        checkpoints_(files.checkpoints),
        arithmetic_(arithmetic),
        question_(question),
        sampler_(sampler_of(job, trail_.head())),
        most_steps_(most_steps_of(job, sampler_)) {}

  Survey look(const std::string& why_no_beginning) {
    ask(checkpoints_.empty() ? 0 : checkpoints_.front().step);
    if (is_of_another_job()) return std::move(survey_);
    judge_trail();
    judge_metrics();
    if (why_no_beginning.empty()) starts_.push_back({});
    // NOLINTNEXTLINE(modernize-loop-convert): clang 14 does not read std::views::reverse
    for (auto entry = checkpoints_.rbegin(); entry != checkpoints_.rend(); ++entry) judge(*entry);
    if (of_other_models_ > 0 && starts_.size() == (why_no_beginning.empty() ? 1U : 0U)) starts_.clear();
    survey_.intervals = plan_intervals(starts_, reachable(), survey_.verdict.asked);
    say_what_is_left(why_no_beginning);
    return std::move(survey_);
  }

 private:
  void ask(std::int64_t newest_checkpoint) {
    const std::int64_t records = trail_.records_up_to(most_steps_);
    newest_checkpoint = std::min(newest_checkpoint, most_steps_);
    last_step_ = std::max(newest_checkpoint, records > 0 ? trail_.step(records - 1) : 0);
    if (last_step_ == 0)
      throw MissingDataError(fmt::format("{}: no step of it is on disk: nothing to prove", job_.run.dir));
    StepRange steps = question_.steps;
    if (std::max(steps.first, steps.last) > last_step_)
      throw UsageError(fmt::format("--steps: {} has {}", job_.run.dir, counted(last_step_, "step")));
    if (steps.first == 0) steps.first = 1;
    if (steps.last == 0) steps.last = last_step_;
    survey_.verdict.asked = {steps};
    if (question_.sample > 0 && question_.sample < steps.count())
      survey_.verdict.asked =
          sample_steps(steps, question_.sample, question_.seed, {steps.last, newest_checkpoint});
  }

  void refute(std::int64_t step, const char* what, std::string text, std::string cause) {
    lockstep::refute(survey_.verdict, step, what, std::move(text), std::move(cause));
  }

  bool is_of_another_job() {
    const auto differences = differing(facts_of(trail_.head(), "job."), determining_keys(job_));
    if (differences.empty()) return false;
    if (differences.size() == 1 && job_.data.leave_out && differences.front().starts_with("data.leave_out "))
      throw DataError(fmt::format(
          "{}: names other samples than when {} was trained without them: {}; bring it back as it was",
          job_.data.leave_out_file, job_.run.dir, differences.front()));
    refute(survey_.verdict.asked.front().first, "job",
           fmt::format("job.yaml and trail.bin are not of one job: {}", fmt::join(differences, ", ")),
           "one of the two was changed, or is of another run");
    return true;
  }

  /// Damaged records that follow one another are one finding.
  void judge_trail() {
    const std::int64_t records = trail_.records_up_to(most_steps_);
    if (records < trail_.records() && survey_.verdict.asked.back().last == last_step_)
      refute(last_step_, "trail",
             fmt::format("trail.bin goes on after step {}, the last of its job, from byte {} on",
                         with_thousands(most_steps_), trail_.end_of(records)),
             "something was added to the file, or job.yaml asks for fewer steps than the run took");
    const auto& damage = trail_.damage();
    for (std::size_t i = 0; i < damage.size() && damage[i].record < records;) {
      std::size_t end = i + 1;
      while (end < damage.size() && damage[end].record == damage[end - 1].record + 1 &&
             damage[end].record < records)
        ++end;
      const StepRange steps{damage[i].step, damage[end - 1].step};
      const auto& asked = survey_.verdict.asked;
      if (without({steps}, asked) != std::vector{steps})
        refute(
            steps.first, "trail",
            fmt::format(
                "the trail is damaged: what trail.bin says of {} (from byte {} on) is not what was written",
                describe({steps}), damage[i].at),
            "a flipped bit in the file, or it was changed");
      i = end;
    }
  }

  /// Lines that no replay is needed for.
  void judge_metrics() {
    const StepRange all{survey_.verdict.asked.front().first, survey_.verdict.asked.back().last};
    for (const MetricsClaims::Problem& problem : metrics_.problems()) {
      if (all.first > problem.step + 1 || problem.step > all.last) continue;
      refute(std::max<std::int64_t>(problem.step, 1), "metrics", problem.text, "metrics.jsonl was changed");
    }
    if (all.last < last_step_) return;
    for (std::size_t i = metrics_.lines().size(); i-- > 0 && metrics_.lines()[i].step > last_step_;) {
      const ClaimedLine& line = metrics_.lines()[i];
      if (line.step <= most_steps_ && line.event != "end")
        continue;  // a killed run's trail may end before it
      return refute(
          last_step_, "metrics",
          fmt::format("line {} of metrics.jsonl (event {}) tells of step {}, and the run has {}", line.number,
                      line.event, with_thousands(line.step), with_thousands(last_step_)),
          "metrics.jsonl was changed, or is of another run");
    }
  }

  /// Reason to refuse a checkpoint, found without replay; empty: it may be gone on from.
  std::string why_not_of_this_run(const CheckpointEntry& entry, const CheckpointFacts& facts) {
    if (const auto differences = differing(facts.job, determining_keys(job_)); !differences.empty())
      return fmt::format("its checkpoint is of another job: {}", fmt::join(differences, ", "));
    if (facts.step != entry.step || facts.seed != job_.train.seed)
      return fmt::format("its checkpoint says step {} and seed {}, and the job's seed is {}", facts.step,
                         facts.seed, job_.train.seed);
    if (!differing(facts.model, facts_of(trail_.head(), "model.")).empty()) {
      ++of_other_models_;
      return "its checkpoint is of another network than trail.bin";
    }
    try {
      if (sampler_) require_possible_position(facts, *sampler_);
    } catch (const DataError& error) {
      return error.what();
    }
    return "";
  }

  /// Checks that a checkpoint is one of this run, and may be gone on from.
  void judge(const CheckpointEntry& entry) {
    if (entry.step >= survey_.verdict.asked.back().last + 1) {
      if (entry.step > most_steps_ && survey_.verdict.asked.back().last == last_step_)
        refute(last_step_, "checkpoint",
               fmt::format("there is a checkpoint of step {}, and the job ends with step {}",
                           with_thousands(entry.step), with_thousands(most_steps_)),
               "it was put there from another run, or job.yaml was changed");
      return;
    }
    CheckpointFacts facts;
    try {
      facts = load_checkpoint(Env::posix(), entry.path).facts;
    } catch (const DataError& error) {
      return refute(entry.step, "checkpoint", fmt::format("its checkpoint is damaged: {}", error.what()),
                    "a flipped bit in the file, or a file that was cut off");
    } catch (const MissingDataError&) {
      return;  // the run, which is under way, has pruned it
    }
    if (const std::string why = why_not_of_this_run(entry, facts); !why.empty())
      return refute(entry.step, "checkpoint", why, "it was put there from another run, or changed");
    compare_metrics_note(entry, facts);
    if (!trail_note_holds(entry, facts)) return;
    survey_.bucket_sizes = facts.bucket_sizes;
    starts_.push_back({entry.step, entry.path});
  }

  /// A trail that was lost or damaged when the run went on begins anew after its checkpoint.
  bool trail_note_holds(const CheckpointEntry& entry, const CheckpointFacts& facts) {
    const std::int64_t records = trail_.records_up_to(entry.step);
    if (!facts.trail || records == 0 || trail_.is_damaged(records - 1)) return true;
    const TrailPosition position = trail_.position(records);
    if (position.records == facts.trail->count && hex(position.chain) == facts.trail->sha256) return true;
    refute(entry.step, "trail",
           fmt::format(
               "its checkpoint says that the trail had {} and the SHA-256 {}..., and it has {} and {}...",
               counted(facts.trail->count, "record"), facts.trail->sha256.substr(0, 16), position.records,
               hex(position.chain).substr(0, 16)),
           "trail and checkpoint are not of one run, or the trail was written anew");
    return false;
  }

  void compare_metrics_note(const CheckpointEntry& entry, const CheckpointFacts& facts) {
    if (!facts.metrics || metrics_.text().empty() || entry.step <= metrics_.lost_up_to()) return;
    const std::string_view noted = first_lines(metrics_.text(), facts.metrics->count);
    const std::int64_t lines = std::ranges::count(noted, '\n');
    const bool whole = lines == facts.metrics->count;
    if (whole && hex(sha256(std::as_bytes(std::span(noted)))) == facts.metrics->sha256) return;
    refute(
        entry.step, "metrics",
        fmt::format("its checkpoint noted {} of metrics.jsonl, and {}", counted(facts.metrics->count, "line"),
                    whole ? "they are others now" : fmt::format("there are {}", lines)),
        "metrics.jsonl was changed, or is of another run");
  }

  std::vector<StepRange> recorded(const std::function<bool(const TrailRecord&)>& which) const {
    std::vector<StepRange> ranges;
    for (std::int64_t i = 0; i < trail_.records(); ++i) {
      const std::int64_t step = trail_.step(i);
      if (step > most_steps_) break;
      if (trail_.is_damaged(i) || which(trail_.record(i))) ranges.push_back({step, step});
    }
    return merged(std::move(ranges));
  }

  std::vector<StepRange> reachable() const {
    const auto here = static_cast<std::uint32_t>(arithmetic_);
    return recorded([&](const TrailRecord& record) { return record.arithmetic == here; });
  }

  /// Those in the trail that are not the one at hand.
  std::set<std::uint32_t> other_arithmetics() const {
    std::set<std::uint32_t> numbers;
    for (std::int64_t i = 0; i < trail_.records(); ++i)
      if (!trail_.is_damaged(i)) numbers.insert(trail_.record(i).arithmetic);
    numbers.erase(static_cast<std::uint32_t>(arithmetic_));
    return numbers;
  }

  void leave_out(const std::vector<StepRange>& steps, const std::string& why) {
    for (const StepRange& range : steps) survey_.verdict.not_proved.push_back({range, why});
  }

  void say_what_is_left(const std::string& why_no_beginning) {
    std::vector<StepRange> covered;
    for (const Interval& interval : survey_.intervals) covered.push_back(interval.steps());
    auto left = without(survey_.verdict.asked, merged(covered));
    const auto with_trail = recorded([](const TrailRecord&) { return true; });
    leave_out(without(left, with_trail), "not in the trail");
    left = without(left, without(left, with_trail));
    for (const std::uint32_t number : other_arithmetics()) {
      const auto other = static_cast<Arithmetic>(number);
      const auto of_other = recorded([&](const TrailRecord& record) { return record.arithmetic == number; });
      const auto here = without(left, without(left, of_other));
      leave_out(here,
                fmt::format("computed with another arithmetic than this ({}, here {}): a proof takes {}",
                            describe(other), describe(arithmetic_), how_to_have(other, arithmetic_)));
      survey_.verdict.lacks_arithmetic |= !here.empty();
      left = without(left, of_other);
    }
    leave_out(left, why_no_beginning.empty()
                        ? "there is no checkpoint to replay from"
                        : "there is no checkpoint to replay from, and the beginning is not at hand: " +
                              why_no_beginning);
  }

  const Job& job_;
  const Trail& trail_;
  const MetricsClaims& metrics_;
  const std::vector<CheckpointEntry>& checkpoints_;
  Arithmetic arithmetic_;
  const ProofRequest& question_;
  std::optional<DistributedSampler> sampler_;  ///< nothing: the trail does not say of how many samples
  std::int64_t most_steps_, last_step_ = 0;    ///< that the job asks for; that are on disk
  int of_other_models_ = 0;                    ///< checkpoints
  std::vector<StartPoint> starts_;
  Survey survey_;
};

}  // namespace

std::map<std::string, std::string> facts_of(const TrailHead& head, const std::string& kind) {
  std::map<std::string, std::string> facts;
  for (const auto& [name, value] : head.facts)
    if (name.starts_with(kind)) facts[name.substr(kind.size())] = value;
  return facts;
}

std::int64_t train_samples_of(const TrailHead& head) {
  const auto found = head.facts.find("data.train_samples");
  const auto samples = found == head.facts.end() ? std::nullopt : parse_int64(found->second);
  return samples && *samples > 0 && *samples <= std::numeric_limits<std::int32_t>::max() ? *samples : 0;
}

Trail trail_of(Env& env, const Job& job) {
  const std::string& run_dir = job.run.dir;
  const std::string path = run_dir + "/" + kTrailFile;
  if (!read_patiently(env, [&] { return env.exists(path); })) {
    if (!is_run(env, run_dir)) throw MissingDataError(why_no_run(env, run_dir));
    throw MissingDataError(
        fmt::format("{}: this run left no trail: it was made with run.trail=false, under "
                    "parallel.determinism: off or as hogwild; only runs with one can be proved",
                    run_dir));
  }
  const Trail head = read_trail(env, path, 0);
  return read_trail(env, path, most_steps_of(job, sampler_of(job, head.head())) + 1);
}

Survey survey_run(const Job& job, const RunFiles& files, Arithmetic arithmetic,
                  const std::string& why_no_beginning, const ProofRequest& question) {
  return Surveyor(job, files, arithmetic, question).look(why_no_beginning);
}

}  // namespace lockstep
