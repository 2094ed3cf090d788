// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The tables of events, fields and files.
#include "trainer/run/metrics.hpp"

namespace lockstep {
namespace {

constexpr std::string_view kWhole = "whole number", kNumber = "number", kNumberOrNull = "number or null",
                           kText = "text", kYesOrNo = "true or false";
constexpr std::string_view kOfPipelines = "parallel.strategy: pipeline";
constexpr std::string_view kNumbers = "list of numbers", kTexts = "list of texts";
constexpr std::string_view kOfEma = "train.ema, where test_accuracy is told",
                           kOfEmaAndValidation = "train.ema and data.validation";
constexpr std::string_view kOfSwa = "train.swa, from its first epoch on, where test_accuracy is told",
                           kOfSwaAndValidation = "train.swa and data.validation";
constexpr std::string_view kOfInitialWeights = "train.initial_weights";
constexpr std::string_view kOfPartialWeights = "train.partial: true";
constexpr std::string_view kOfValidation = "data.validation above 0";
constexpr std::string_view kUnlessValidation = "data.validation: 0";
constexpr std::string_view kOfRanks = "several ranks that share samples on CPUs";
constexpr std::string_view kOfFewRanks = "as exposed_seconds, up to 64 ranks";

using Fields = std::vector<EventField>;

Fields joined(Fields fields, const Fields& more) {
  fields.insert(fields.end(), more.begin(), more.end());
  return fields;
}

// clang-format off
Fields evaluation_fields(std::string_view when_tested) {
  return {
    {"test_loss", kNumberOrNull, "", "the mean over the test set, without label smoothing and class weights; null where it is not finite", when_tested},
    {"test_accuracy", kNumber, "share", "of the test samples whose class was found, 0 to 1", when_tested},
    {"test_samples", kWhole, "samples", "of the test set", when_tested},
    {"validation_loss", kNumberOrNull, "", "the mean over the samples that are held out", kOfValidation},
    {"validation_accuracy", kNumber, "share", "of them whose class was found, 0 to 1", kOfValidation},
    {"validation_samples", kWhole, "samples", "that are held out", kOfValidation},
    {"ema_test_loss", kNumberOrNull, "", "as test_loss, of the average of the weights", kOfEma},
    {"ema_test_accuracy", kNumber, "share", "as test_accuracy, of that average", kOfEma},
    {"ema_validation_loss", kNumberOrNull, "", "as validation_loss, of that average", kOfEmaAndValidation},
    {"ema_validation_accuracy", kNumber, "share", "as validation_accuracy, of that average", kOfEmaAndValidation},
    {"swa_test_loss", kNumberOrNull, "", "as test_loss, of the mean of weights at ends of epochs", kOfSwa},
    {"swa_test_accuracy", kNumber, "share", "as test_accuracy, of that mean", kOfSwa},
    {"swa_validation_loss", kNumberOrNull, "", "as validation_loss, of that mean", kOfSwaAndValidation},
    {"swa_validation_accuracy", kNumber, "share", "as validation_accuracy, of that mean", kOfSwaAndValidation},
  };
}

RunEvent start() {
  return {"start", "A run begins. A run that goes on writes none.", {
    {"version", kText, "", "the program's version"},
    {"world", kWhole, "ranks", "how many ranks there are"},
    {"hosts", kWhole, "hosts", "how many hosts they are on"},
    {"threads", kWhole, "threads", "of each rank"},
    {"device", kText, "", "what each rank computes on: cpu, cuda or emulated"},
    {"backend", kText, "", "how ranks talk: mpi, nccl or thread; none: one rank alone, which starts no MPI"},
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
    {"validation_samples", kWhole, "samples", "that are held out of the training set", kOfValidation},
    {"global_batch", kWhole, "samples", "of a step, all ranks together"},
    {"grain", kWhole, "samples", "that are summed in one piece"},
    {"determinism", kText, "", "world or off"},
    {"seed", kWhole, "", "train.seed"},
    {"optimizer", kText, "", "train.optimizer.kind"},
    {"schedule", kText, "", "train.schedule.kind"},
    {"learning_rate", kNumber, "", "of the first step"},
    {"initial_weights", kText, "", "the file that the weights were read from", kOfInitialWeights},
    {"initial_tensors", kWhole, "tensors", "that were read from it", kOfInitialWeights},
    {"initial_sha256", kText, "", "SHA-256 over all weights before the first step, 64 hexadecimal digits", kOfInitialWeights},
    {"new_tensors", kTexts, "", "those that it has not, or in another shape: they start from the seed", kOfPartialWeights},
    {"unused_tensors", kTexts, "", "of the file, whose names the network has not; at most 100", kOfPartialWeights},
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
    {"train_accuracy", kNumber, "share", "of the samples of the last steps that were answered right, 0 to 1"},
    {"accuracy_steps", kWhole, "steps", "that train_accuracy is over"},
    {"gradient_norm", kNumber, "", "the Euclidean norm of this step's mean gradient", "on CPUs, but for hogwild"},
  }};
}

RunEvent loss() {
  return {"loss", "Every run.print_loss_every_steps steps of an epoch.", {
    {"epoch", kWhole, "", "counted from 1"},
    {"step", kWhole, "steps", "taken since the run began"},
    {"steps", kWhole, "steps", "that the mean is over"},
    {"mean_loss", kNumber, "", "the mean of these steps' losses"},
    {"learning_rate", kNumber, "", "of the last of them"},
  }};
}

RunEvent epoch() {
  return {"epoch", "An epoch ends.", joined({
    {"epoch", kWhole, "", "counted from 1"},
    {"step", kWhole, "steps", "taken since the run began"},
    {"train_loss", kNumber, "", "the mean over the samples of the epoch, each before the step that it was used for; with label smoothing and class weights, if the job has them"},
    {"train_accuracy", kNumber, "share", "of these samples that were answered right then, 0 to 1"},
    {"train_samples", kWhole, "samples", "that were used"},
    {"train_seconds", kNumber, "seconds", "of its steps, without the evaluation"},
    {"learning_rate", kNumber, "", "of its last step"},
    {"epoch_seconds", kNumber, "seconds", "with the evaluation"},
    {"step_seconds_p50", kNumber, "seconds", "half of its steps took no longer"},
    {"step_seconds_p90", kNumber, "seconds", "nine tenths of them took no longer"},
    {"step_seconds_p99", kNumber, "seconds", "99 of 100 took no longer"},
    {"resident_bytes", kWhole, "bytes", "of memory, on the rank that has most"},
    {"peak_resident_bytes", kWhole, "bytes", "the most that a rank had so far"},
    {"device_bytes", kWhole, "bytes", "of a GPU's memory, on the rank that has most", "on GPUs"},
    {"peak_device_bytes", kWhole, "bytes", "the most that a rank had so far", "on GPUs"},
    {"exposed_seconds", kNumber, "seconds", "in which a rank waited for gradients, the mean over ranks", kOfRanks},
    {"rank_skew", kNumber, "share", "by which the slowest rank worked longer than the mean", kOfRanks},
    {"slowest_rank", kWhole, "", "its number", kOfRanks},
    {"rank_busy_seconds", kNumbers, "seconds", "in which each rank worked", kOfFewRanks},
    {"rank_exposed_seconds", kNumbers, "seconds", "in which each rank waited for gradients", kOfFewRanks},
  }, evaluation_fields(kUnlessValidation))};
}

RunEvent evaluation() {
  return {"evaluation", "Every train.evaluate_every_steps steps within an epoch.", joined({
    {"epoch", kWhole, "", "counted from 1"},
    {"step", kWhole, "steps", "taken since the run began"},
  }, evaluation_fields(kUnlessValidation))};
}

RunEvent lost() {
  return {"lost", "A run goes on, and lines are gone that metrics.jsonl held when the checkpoint was saved.", {
    {"step", kWhole, "steps", "of the checkpoint that the run goes on from"},
    {"lines_noted", kWhole, "lines", "that the file had then"},
  }};
}

RunEvent end() {
  return {"end", "The run comes to its end. A run that was stopped writes none.", joined(joined({
    {"step", kWhole, "steps", "taken since the run began"},
    {"seconds", kNumber, "seconds", "since this start of the run, evaluations included"},
  }, evaluation_fields("always")), {
    {"stopped_early", kYesOrNo, "", "true: train.patience ended it", "it did"},
    {"pipeline.bubble", kNumber, "share", "of the ranks' time in steps, spent waiting, 0 to 1", kOfPipelines},
    {"pipeline.micro_batches", kNumber, "grains", "of each step", kOfPipelines},
    {"pipeline.bytes_sent", kNumber, "bytes", "of activations and gradients between stages", kOfPipelines},
    {"pipeline.stage_N_in_flight", kNumber, "grains", "that stage N keeps at most between their passes", kOfPipelines},
    {"pipeline.stage_N_forward_seconds", kNumber, "seconds", "of a grain's forward pass in stage N", kOfPipelines},
    {"pipeline.stage_N_backward_seconds", kNumber, "seconds", "of a grain's backward pass in stage N", kOfPipelines},
    {"weights_sha256", kText, "", "SHA-256 over all parameters, 64 hexadecimal digits"},
    {"published_hash", kYesOrNo, "", "whether these are the published weights", "weights of this computation are published"},
  })};
}
// clang-format on

}  // namespace

const std::vector<RunEvent>& events_of_runs() {
  static const std::vector<RunEvent> events = [] {
    std::vector<RunEvent> all = {start(), step(), loss(), evaluation(), epoch(), lost(), end()};
    for (RunEvent& event : all)
      event.fields.push_back({"time", kText, "", "when the line was written, as 2026-11-23T17:05:01.123Z"});
    return all;
  }();
  return events;
}

const std::vector<RunFile>& files_of_runs() {
  static const std::vector<RunFile> files = {
      {"job.yaml", "the name of the job and every key, as carried out; resume, eval and prove read it"},
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
      {"ranks.jsonl",
       "which rank computed which steps on which host and device, and sums by which prove names a rank",
       "with trail.bin"},
      {"doubt.json",
       "after which step checkpoints are in doubt, and why; a start goes on from an earlier one and removes "
       "it",
       "a replay found a rank that was wrong, and it may have been so for longer"},
      {"log/rank-0.log", "what rank 0 said, with the time"},
      {"log/verdict.txt", "which rank the last start lost, and why", "the watchdog named one"},
      {"log/verdict-N.txt", "the same of earlier starts", "a later start began"},
      {"trace.pftrace", "what all ranks did in some steps, for ui.perfetto.dev", "run.trace"},
      {"events.out.tfevents.N.lockstep", "scalars for TensorBoard; one a start", "run.tensorboard: true"},
      {"report.html", "curves, classes and mistakes as a page", "run.report: true, at the end"},
      {"lock", "says which process uses the run; it stays when that has ended"},
      {"previous-N/", "what an earlier run left here, or checkpoints later than the one gone on from",
       "run.resume: never, or a checkpoint"},
  };
  return files;
}

}  // namespace lockstep
