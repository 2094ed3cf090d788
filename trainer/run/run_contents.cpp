// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The tables of events, fields and files.
#include "trainer/run/run_contents.hpp"

namespace lockstep {
namespace {

constexpr std::string_view kWhole = "whole number", kNumber = "number", kNumberOrNull = "number or null",
                           kText = "text", kYesOrNo = "true or false";
constexpr std::string_view kOfPipelines = "parallel.strategy: pipeline";
constexpr std::string_view kOfCountedUpdates = "parallel.count_lost_updates: true";

// clang-format off
RunEvent start() {
  return {"start", "A run begins. A run that goes on writes none.", {
    {"version", kText, "", "the program's version"},
    {"world", kWhole, "ranks", "how many ranks there are"},
    {"hosts", kWhole, "hosts", "how many hosts they are on"},
    {"threads", kWhole, "threads", "of each rank"},
    {"device", kText, "", "what each rank computes on: cpu, cuda or emulated"},
    {"backend", kText, "", "how ranks talk: mpi, nccl or thread"},
    {"strategy", kText, "", "what ranks share: data, pipeline or hogwild"},
    {"buckets", kText, "", "how gradients are cut for the sum over ranks", "parallel.strategy: data or hogwild"},
    {"stages", kText, "", "first and last layer of each stage", kOfPipelines},
    {"placement", kText, "", "the rank of each stage", kOfPipelines},
    {"pipelines", kText, "", "how many pipelines work side by side", kOfPipelines},
    {"pipeline_schedule", kText, "", "the order of passes: 1f1b or gpipe", kOfPipelines},
    {"model", kText, "", "the network's name"},
    {"parameters", kWhole, "parameters", "that are trained"},
    {"data", kText, "", "the data set's name"},
    {"data_origin", kText, "", "the directory of its files, or that it was made in memory"},
    {"train_samples", kWhole, "samples", "in the training set"},
    {"test_samples", kWhole, "samples", "in the test set"},
    {"global_batch", kWhole, "samples", "of a step, all ranks together"},
    {"grain", kWhole, "samples", "that are summed in one piece"},
    {"determinism", kText, "", "world or off"},
    {"seed", kWhole, "", "train.seed"},
    {"optimizer", kText, "", "train.optimizer.kind"},
    {"schedule", kText, "", "train.schedule.kind"},
    {"learning_rate", kNumber, "", "of the first step"},
    {"setup_seconds", kNumber, "seconds", "from the start of the process to the first step"},
  }};
}

RunEvent step() {
  return {"step", "Every run.log_every_steps steps.", {
    {"epoch", kWhole, "", "counted from 1"},
    {"step", kWhole, "steps", "taken since the run began, this one included"},
    {"loss", kNumber, "", "the mean over the samples of this step"},
    {"learning_rate", kNumber, "", "of this step"},
    {"samples_per_second", kNumber, "samples/second", "of all ranks, since the epoch began or the run went on"},
  }};
}

RunEvent loss() {
  return {"loss", "Every run.print_loss_every_steps steps of an epoch.", {
    {"epoch", kWhole, "", "counted from 1"},
    {"step", kWhole, "steps", "taken since the run began"},
    {"steps", kWhole, "steps", "that the mean is over"},
    {"mean_loss", kNumber, "", "the mean of these steps' losses"},
  }};
}

RunEvent epoch() {
  return {"epoch", "An epoch ends.", {
    {"epoch", kWhole, "", "counted from 1"},
    {"step", kWhole, "steps", "taken since the run began"},
    {"train_loss", kNumber, "", "the mean over the samples of the epoch, each before the step that it was used for"},
    {"train_samples", kWhole, "samples", "that were used"},
    {"train_seconds", kNumber, "seconds", "of its steps, without the evaluation"},
    {"learning_rate", kNumber, "", "of its last step"},
    {"test_loss", kNumberOrNull, "", "the mean over the test set; null where it is not finite"},
    {"test_accuracy", kNumber, "share", "of the test samples whose class was found, 0 to 1"},
    {"test_samples", kWhole, "samples", "that were evaluated"},
  }};
}

RunEvent straggler() {
  return {"straggler", "At the end of a run, for each rank that held the others up.", {
    {"step", kWhole, "steps", "taken since the run began"},
    {"rank", kWhole, "", "the rank's number"},
    {"host", kText, "", "where it ran"},
    {"first_named_step", kWhole, "steps", "when it was named first"},
    {"last_share", kNumber, "share", "of the buckets, it arrived last in so many, 0 to 1"},
    {"late_seconds", kNumber, "seconds", "behind the middle of the others, where it was last"},
    {"cause", kText, "", "where it lost the time"},
    {"score", kNumber, "share", "its speed beside the best rank's and its own best, 0 to 1"},
  }};
}

RunEvent lost() {
  return {"lost", "A run goes on, and lines are gone that metrics.jsonl held when the checkpoint was saved.", {
    {"step", kWhole, "steps", "of the checkpoint that the run goes on from"},
    {"lines_noted", kWhole, "lines", "that the file had then"},
  }};
}

RunEvent end() {
  return {"end", "The run comes to its end. A run that was stopped writes none.", {
    {"step", kWhole, "steps", "taken since the run began"},
    {"seconds", kNumber, "seconds", "since this start of the run, evaluations included"},
    {"test_loss", kNumberOrNull, "", "of the last evaluation; null where it is not finite"},
    {"test_accuracy", kNumber, "share", "of the last evaluation, 0 to 1"},
    {"test_samples", kWhole, "samples", "that were evaluated"},
    {"pipeline.bubble", kNumber, "share", "of the ranks' time in steps, spent waiting, 0 to 1", kOfPipelines},
    {"pipeline.bubble_by_formula", kNumber, "share", "what it must be for stages as long as these", kOfPipelines},
    {"pipeline.bubble_of_equal_stages", kNumber, "share", "what it would be for stages of equal length", kOfPipelines},
    {"pipeline.micro_batches", kNumber, "grains", "of each step", kOfPipelines},
    {"pipeline.bytes_sent", kNumber, "bytes", "of activations and gradients between stages", kOfPipelines},
    {"pipeline.stage_N_in_flight", kNumber, "grains", "that stage N keeps at most between their passes", kOfPipelines},
    {"pipeline.stage_N_forward_seconds", kNumber, "seconds", "of a grain's forward pass in stage N", kOfPipelines},
    {"pipeline.stage_N_backward_seconds", kNumber, "seconds", "of a grain's backward pass in stage N", kOfPipelines},
    {"hogwild.updates", kNumber, "numbers", "that were moved in the shared weights", kOfCountedUpdates},
    {"hogwild.lost_updates", kNumber, "numbers", "that one rank overwrote just after another", kOfCountedUpdates},
    {"weights_sha256", kText, "", "SHA-256 over all parameters, 64 hexadecimal digits"},
    {"published_hash", kYesOrNo, "", "whether these are the published weights", "weights of this computation are published"},
  }};
}
// clang-format on

}  // namespace

const std::vector<RunEvent>& events_of_runs() {
  static const std::vector<RunEvent> events = {start(), step(), loss(), epoch(), straggler(), lost(), end()};
  return events;
}

const std::vector<RunFile>& files_of_runs() {
  static const std::vector<RunFile> files = {
      {"job.yaml", "the job with every key, as it was carried out; resume, eval and prove read it"},
      {"metrics.jsonl", "what happened, one JSON object a line"},
      {"checkpoints/step-N/manifest.json", "what the checkpoint is: position, network, data, checksums",
       "run.checkpoint_every_steps, run.keep.best, and the end"},
      {"checkpoints/step-N/model.safetensors", "the weights", "with each manifest"},
      {"checkpoints/step-N/optimizer.safetensors", "what the optimiser remembers",
       "with each manifest, where it remembers anything"},
      {"checkpoints/step-N.damaged/", "a checkpoint whose checksums failed; delete it when it is not needed",
       "a damaged one was found"},
      {"checkpoints/.tmp-step-N/", "a checkpoint that is being saved; the next start removes it",
       "while one is saved"},
      {"trail.bin", "fingerprints of each step, by which lockstep prove checks the run",
       "run.trail: true, under parallel.determinism: world"},
      {"log/rank-0.log", "what rank 0 said, with the time"},
      {"report.html", "curves, classes and mistakes as a page", "run.report: true, at the end"},
      {"curve.svg", "the test accuracy after each epoch", "run.curve: true"},
      {"flight/N/rank-N.flight", "what each rank did last, for each of the last three starts",
       "several ranks"},
      {"flight/N/verdict.txt", "which rank was lost, and why", "the watchdog named one"},
      {"lock", "says which process uses the run; it stays when that has ended"},
      {"previous-N/", "what an earlier run left here, or checkpoints later than the one gone on from",
       "run.resume: never, or a checkpoint"},
  };
  return files;
}

}  // namespace lockstep
