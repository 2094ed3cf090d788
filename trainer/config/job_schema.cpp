// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Every key of a job file, described here and nowhere else.
#include "trainer/config/job_schema.hpp"

#include "comm/backend.hpp"
#include "data/sets/catalogue.hpp"
#include "data/sets/set_loading.hpp"
#include "trainer/config/key_kinds.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>

namespace lockstep {
namespace {

constexpr std::int64_t kBillion = 1'000'000'000;
constexpr std::int64_t kTrillion = 1000 * kBillion;
constexpr std::int64_t kMaxSteps = std::numeric_limits<std::uint32_t>::max();  // as wide as PassKey::step
constexpr Determines kWeights = Determines::kWeights;

/// KEY(path, kind, meaning, determines): the path of a key is spelt like the way to its field.
// clang-format off
#define KEY(path, ...) KEY_OF(#path, path, __VA_ARGS__)
#define KEY_OF(path, field, ...) key(path, job_keys::Field([](auto& job) -> decltype(auto) { return (job.field); }), __VA_ARGS__)

std::vector<JobKey> model_and_data_keys() {
  using namespace job_keys;
  return {
    KEY(model, path("the name of a model or a path to a YAML network"),
        "the network: net, lenet, conv3, conv4, resnet8, resnet20, resnet18, resnet50, mobilenet_v2, mlp, linear, or a path to a YAML file, beside the job file or in the current directory", kWeights)
        .also_called({"network", "net", "arch"}).such_as("resnet20"),
    KEY(data.set, one_of(set_names()),
        fmt::format("the data set; idx: your own, in data.root; {}: made in memory", fmt::join(made_sets(), " and ")), kWeights)
        .also_called({"dataset", "name", "kind"}),
    KEY(data.root, path("auto or a directory"),
        "where the files are: a directory beside the job file, or in the current one; auto looks where the run had them, in $LOCKSTEP_DATA, ~/.cache/lockstep and /usr/share/datasets")
        .also_called({"path", "dir", "directory", "folder", "data_dir"}).such_as("/data/mnist"),
    KEY(data.global_batch, whole(1, BatchOptions::kLargestBatch), "samples of a step, all ranks together; never more than there are", kWeights)
        .also_called({"batch_size", "batch", "batchsize"}).such_as("256"),
    KEY(data.per_rank_batch, whole(0, kBillion),
        "samples of a step on each rank, as in DistributedDataParallel: global_batch is this times the ranks; 0: global_batch counts")
        .also_called({"local_batch", "batch_per_rank", "per_gpu_batch", "batch_per_gpu"}).such_as("32"),
    KEY(data.micro_batch, whole_or_auto(kBillion),
        "how many samples a GPU computes at a time, in whole grains, one at least: gradient accumulation, which bounds memory and changes no bit; auto or 0: all of a rank's at once; on a CPU it changes nothing, where grains (parallel.grain) are computed one by one")
        .also_called({"microbatch", "micro_batch_size", "train_micro_batch_size_per_gpu"}).such_as("64"),
    KEY(data.mean, channel_numbers({-1e6, 1e6}), "subtracted from pixels in [0, 1], or from a table's numbers; auto: the mean of the set, measured if it is your own", kWeights).such_as("0.5"),
    KEY(data.std, channel_numbers({1e-6, 1e6}), "pixels or a table's numbers are divided by it, once the mean is subtracted; auto: the standard deviation of the set", kWeights).such_as("0.5"),
    KEY(data.shuffle, yes_or_no(), "a new order of the training samples in each epoch", kWeights),
    KEY(data.shuffle_window, whole(0, kBillion), "for slow disks: samples are shuffled among so many neighbours, and these windows among each other, so that what is read lies close together; 0: among all, each order equally likely", Determines::kWeightsUnlessDefault)
        .also_called({"shuffle_buffer", "shuffle_buffer_size", "buffer_size", "window"}).such_as("65536"),
    KEY(data.in_memory, yes_or_no(), "read a set in shards or a table, or decode pictures, into the memory of each rank at the start; otherwise its images stay on disk, and ranks read what they compute"),
    KEY(data.on_device, one_of<OnDevice>(), "on a GPU: whole copies the set there at the start; stream brings the samples of the coming steps there ahead of them, from memory or disk, so that the set may be larger than the GPU's memory; auto streams where the whole set would leave less than a tenth of what is free there"),
    KEY_OF("data.size", data.pictures.size, picture_size(), "for pictures: the size they are scaled to, width first; auto: they are all of one size", Determines::kWeightsUnlessDefault)
        .also_called({"image_size", "img_size", "resize"}).such_as("64x48"),
    KEY_OF("data.fit", data.pictures.fit, one_of<PictureFit>(), "for pictures of other proportions than data.size: crop keeps their middle, pad adds black, squeeze changes them", Determines::kWeightsUnlessDefault),
    KEY_OF("data.colour", data.pictures.colour, colour(), "for pictures: samples have red, green and blue; false: one grey channel", Determines::kWeightsUnlessDefault)
        .also_called({"color", "rgb"}),
    KEY(data.label, word("cls, or a key of each sample's .json"), "for WebDataset archives, the place of the labels: cls: numbers or names in .cls; or this key of .json, whose value is a whole number, a name, or a list of them", Determines::kWeightsUnlessDefault)
        .also_called({"label_key", "target", "target_key"}).such_as("class_id"),
    KEY(data.balance_classes, yes_or_no(), "draw each class equally often in an epoch, which has as many samples as ever: those of small classes are repeated, those of large ones take turns over epochs", Determines::kWeightsUnlessDefault)
        .also_called({"balance", "balanced", "sampler", "weighted_sampler", "oversample"}),
    KEY(data.train_samples, whole(0, kBillion), "train on so many of the training samples, chosen by train.seed, once data.validation is held out; of sets made in memory: make so many; 0: all", kWeights).such_as("6000"),
    KEY(data.test_samples, whole(0, kBillion), "evaluate on so many of the test samples, chosen by train.seed; of sets made in memory: make so many; 0: all").such_as("1000"),
    KEY(data.validation, samples_or_share(kBillion),
        "training samples that are held out, chosen by train.seed: never trained on, the run is evaluated on them; files: the set's own validation half instead; 0: none, evaluated on the test set", Determines::kWeightsUnlessDefault)
        .also_called({"validation_split", "val_split", "validation_size", "val_size", "valid_size", "holdout"}).such_as("5000"),
    KEY_OF("data.leave_out", data.leave_out_file, path("a path, or nothing", true),
        "training samples that are left out, neither trained on nor held out: a text file beside the job file or in the current directory, with a place in the training half from 0 or the name of a picture a line; empty: none", Determines::kWeightsUnlessDefault)
        .also_called({"exclude", "exclude_file", "skip_samples", "ignore_list", "blacklist"}).such_as("mislabelled.txt"),
    KEY(data.augment, augmentations(),
        "how training images are changed at random, in order; of an image another draw in each epoch; [] for none: docs/augmentation.md", Determines::kWeightsUnlessDefault)
        .also_called({"augmentation", "augmentations", "transform", "transforms"}).such_as("[{crop: {padding: 4}}, {flip: {horizontal: 0.5}}]"),
  };
}

std::vector<JobKey> train_keys() {
  using namespace job_keys;
  return {
    KEY(train.epochs, whole(1, UpdateOptions::kMostEpochs), "passes over the training samples").such_as("20"),
    KEY(train.seed, whole<std::uint64_t>(0, UINT64_MAX), "everything random is derived from it", kWeights).also_called({"random_seed"}).such_as("42"),
    KEY(train.max_steps, whole(0, kMaxSteps), "stop after so many steps; 0: no limit").also_called({"steps"}).such_as("1000"),
    KEY(train.evaluate_every_steps, whole(0, kTrillion), "evaluate so often besides after each epoch; 0: only then")
        .also_called({"eval_every", "eval_interval", "eval_steps", "val_check_interval"}).such_as("100"),
    KEY(train.patience, whole(0, kBillion), "end the run after so many evaluations without a better accuracy; 0: never")
        .also_called({"early_stopping", "early_stopping_patience"}).such_as("5"),
    KEY(train.initial_weights, path("a path, or nothing", true),
        "a safetensors or .onnx file, a checkpoint, a run directory (its newest good checkpoint) or RUN@best, RUN@epoch:3, RUN@ema to start from; empty: initialise from the seed", kWeights)
        .also_called({"pretrained", "weights"}).such_as("runs/mnist@best"),
    KEY(train.partial, yes_or_no(),
        "take those tensors of train.initial_weights whose name and shape fit, and start the others from the seed", Determines::kWeightsUnlessDefault)
        .also_called({"ignore_mismatched_sizes"}),
    KEY(train.recompute, yes_or_no(),
        "less memory for activations on CPUs: backward makes most of them again, which takes up to a third longer and gives the same bits")
        .also_called({"gradient_checkpointing", "activation_checkpointing", "checkpoint_activations"}),
    KEY(train.initial_scale, real({0, 1e6}), "the standard deviation of the initial weights, with biases of 0; 0: as the model says", kWeights)
        .also_called({"init_scale", "scale", "init_std", "init"}).such_as("0.01"),
    KEY(train.loss, one_of<LossKind>(),
        "the loss to minimise; cross_entropy: of the softmax; mse: the mean over the classes of squared differences to targets of 0 and 1; binary_cross_entropy: of each class by itself, as BCEWithLogitsLoss, where data may give a sample several labels",
        Determines::kWeightsUnlessDefault)
        .also_called({"criterion", "loss_function", "objective"}),
    KEY(train.precision, one_of<Precision>(),
        "type of the products in convolutions and fully connected layers; int16: operands are rounded to 16-bit integers, and sums are exact: docs/int16.md; on CPUs",
        Determines::kWeightsUnlessDefault)
        .also_called({"dtype", "mixed_precision", "amp", "autocast", "bf16", "fp16"}),
    KEY(train.label_smoothing, real(kShares), "the share of each target that goes to all classes equally; training only", Determines::kWeightsUnlessDefault)
        .also_called({"smoothing"}).such_as("0.1"),
    KEY(train.class_weights, class_weights(),
        "weights of the classes in the cross-entropy, in the order of the labels; balanced: samples / (classes * samples of the class); training only",
        Determines::kWeightsUnlessDefault)
        .also_called({"class_weight", "loss_weights"}).such_as("balanced"),
    KEY(train.ema, real({0, 1, false, true}),
        "keep an exponential moving average of the weights: each step keeps this share of it, such as 0.999, and adds the rest of the new weights: RUN@ema; 0: none", Determines::kWeightsUnlessDefault)
        .also_called({"ema_decay", "model_ema", "ema_weights"}).such_as("0.999"),
    KEY(train.swa.from_epoch, whole(0, kBillion),
        "keep the mean of the weights at the ends of this epoch and all later ones: RUN@swa; 0: none", Determines::kWeightsUnlessDefault)
        .also_called({"swa_start", "swa_epoch_start"}).such_as("8"),
  };
}

/// Keys that act on gradients before the optimiser does, and on which tensors.
std::vector<JobKey> update_keys() {
  using namespace job_keys;
  return {
    KEY(train.clip_norm, real(kNorms), "the mean gradient is scaled down to this norm, all tensors together, where it has a larger one; 0: never", Determines::kWeightsUnlessDefault)
        .also_called({"max_grad_norm", "gradient_clip_val", "grad_clip", "clip_grad", "clip_grad_norm", "clipnorm", "max_norm"}).such_as("1"),
    KEY(train.clip_value, real({0, 1e9}), "each element of the mean gradient is kept within this and its negative; 0: never", Determines::kWeightsUnlessDefault)
        .also_called({"clip_grad_value", "clipvalue"}).such_as("0.5"),
    KEY(train.groups, groups(), "tensors with a rate (lr_factor times that of all) or a weight decay of their own; the first pattern that matches a tensor's name counts", Determines::kWeightsUnlessDefault)
        .also_called({"param_groups", "parameter_groups", "lr_mult", "layer_lr"}).such_as("[{match: fc*, lr_factor: 0.1}]"),
    KEY(train.freeze, patterns(), "tensors that stay as they are, by patterns of their names", Determines::kWeightsUnlessDefault)
        .also_called({"frozen", "requires_grad", "trainable"}).such_as("[conv*]"),
  };
}

std::vector<JobKey> optimizer_keys() {
  using namespace job_keys;
  return {
    KEY(train.optimizer.kind, one_of(choices_of("train.optimizer")), "the update rule", kWeights).also_called({"name", "type"}),
    KEY(train.optimizer.lr, real(kRates), "learning rate; the highest one where a schedule goes up and down", kWeights)
        .also_called({"learning_rate", "rate", "max_lr", "base_lr"}).such_as("0.1"),
    KEY(train.optimizer.momentum, real(kShares), "share of the last update that is carried on; 0: none", kWeights).such_as("0.5"),
    KEY(train.optimizer.weight_decay, real(kDecays), "added to the gradient, times the weight; adamw, lion: taken from the weight, times the rate", kWeights)
        .also_called({"wd", "decay", "l2"}).such_as("5e-4"),
    KEY(train.optimizer.dampening, real({0, 1}), "share of the gradient that is kept out of the momentum, but at the first step", Determines::kWeightsUnlessDefault).such_as("0.1"),
    KEY(train.optimizer.nesterov, yes_or_no(), "look ahead along the momentum", kWeights),
    KEY(train.optimizer.maximize, yes_or_no(), "climb: the loss is made large, not small", Determines::kWeightsUnlessDefault),
    KEY(train.optimizer.betas, list_of(real(kShares), "a list of two numbers from 0, below 1, such as [0.9, 0.999]", 2, 2),
        "shares of the running means of gradient and squared gradient that are carried on", kWeights)
        .also_called({"beta", "beta1", "beta2"}).such_as("[0.9, 0.98]"),
    KEY(train.optimizer.amsgrad, yes_or_no(), "divide by the largest running mean of the squared gradient so far, not by the last one", Determines::kWeightsUnlessDefault),
    KEY(train.optimizer.eps, real(kEpsilons), "added to the divisor of an update, so that it is never 0", kWeights).also_called({"epsilon"}).such_as("1e-6"),
    KEY(train.optimizer.alpha, real({0, 1, false, true}), "share of the running mean of the squared gradient that is carried on", kWeights).such_as("0.9"),
    KEY(train.optimizer.trust_coefficient, real({0, 1e6, true}), "the rate of a tensor is this times the norm of its weights over that of its gradient", kWeights).such_as("0.01"),
    KEY(train.optimizer.decay_biases, yes_or_no(), "weight decay for biases and the weights of norms, too", kWeights)
        .also_called({"no_bias_decay", "bias_decay"}),
    KEY(train.optimizer.lr_scaling.rule, one_of(choices_of("train.optimizer.lr_scaling")),
        "linear: lr is multiplied by global_batch / base_batch; sqrt: by the square root of that; none: lr is as it is given", kWeights),
    KEY(train.optimizer.lr_scaling.base_batch, whole(1, kBillion), "the global batch that lr is meant for", kWeights).such_as("128"),
  };
}

std::vector<JobKey> schedule_keys() {
  using namespace job_keys;
  return {
    KEY(train.schedule.kind, one_of(choices_of("train.schedule")), "how the learning rate changes during the run", kWeights)
        .also_called({"name", "type", "scheduler", "lr_scheduler", "lr_schedule"}),
    KEY(train.schedule.by, one_of({"epoch", "step"}), "when the rate changes, and what step_size, milestones and total count; one_cycle: step", kWeights)
        .also_called({"unit", "interval"}),
    KEY(train.schedule.step_size, whole(1, kTrillion), "the rate falls whenever so many have passed", kWeights).such_as("10"),
    KEY(train.schedule.milestones, list_of(whole(1, kTrillion), "a list of whole numbers from 1 on such as [30, 80]"),
        "the rate falls when so many have passed", kWeights),
    KEY(train.schedule.gamma, real(kRates), "factor of the rate at each fall", kWeights).also_called({"decay_rate"}).such_as("0.5"),
    KEY(train.schedule.power, real({0, 100, true}), "the exponent of the share of the schedule that is left", kWeights).such_as("2"),
    KEY(train.schedule.min_lr, real(kDecays), "the rate at the end", kWeights).also_called({"eta_min", "end_lr"}).such_as("1e-5"),
    KEY(train.schedule.total, whole(0, kTrillion), "how long the schedule is, after its warm-up; 0: to the end of train.epochs", kWeights)
        .also_called({"T_max", "total_iters", "total_steps", "t_max"}).such_as("30"),
    KEY(train.schedule.pct_start, real({0, 1, true, true}), "the share of the schedule during which the rate goes up", kWeights).such_as("0.2"),
    KEY(train.schedule.div_factor, real({1, 1e9}), "the rate starts at lr divided by this", kWeights).such_as("10"),
    KEY(train.schedule.final_div_factor, real({1, 1e12}), "the rate ends at its start divided by this", kWeights).such_as("100"),
    KEY(train.schedule.anneal, one_of({"cos", "linear"}), "the way from one rate to the next", kWeights).also_called({"anneal_strategy"}),
    KEY(train.schedule.cycle_momentum, yes_or_no(), "momentum (betas[0]) goes the other way: from max_momentum to base_momentum and back", kWeights),
    KEY(train.schedule.base_momentum, real({0, 1, false, true}), "the momentum where the rate is highest", kWeights).such_as("0.8"),
    KEY(train.schedule.max_momentum, real({0, 1, false, true}), "the momentum at start and end", kWeights).such_as("0.9"),
    KEY(train.schedule.warmup_epochs, whole(0, kBillion), "epochs in which the rate goes up in a line; the schedule counts from their end", kWeights)
        .also_called({"warmup"}).such_as("1"),
    KEY(train.schedule.warmup_steps, whole(0, kTrillion), "steps in which the rate goes up in a line; the schedule counts from their end", kWeights).such_as("500"),
    KEY(train.schedule.warmup_start, real({0, 1}), "the share of the rate that the warm-up starts from", kWeights)
        .also_called({"start_factor", "warmup_factor", "warmup_start_factor"}).such_as("0.1"),
  };
}

std::vector<JobKey> parallel_keys() {
  using namespace job_keys;
  return {
    KEY(parallel.strategy, one_of(choices_of("parallel")), "kind of parallelism; data: the samples of a batch, each rank has the whole network; pipeline: the layers; hogwild: one set of weights, moved without locks")
        .also_called({"mode", "type"}),
    KEY(parallel.stages, stages(),
        "where the network is cut; a number: so many stages of about equal work; auto: one for each rank").such_as("2"),
    KEY(parallel.placement, or_auto(list_of(whole(0, 4095), "auto or a list of ranks from 0 on such as [0, 1, 0, 1]")), "the rank of each stage within its pipeline; auto: one after the other, and from 0 again")
        .also_called({"devices", "device_ids"}),
    KEY(parallel.schedule, one_of<PipelineOrder>(),
        "the order of a pipeline's passes; 1f1b: backward as soon as there is one, few grains in flight; gpipe: all forward passes first"),
    KEY(parallel.device, device(),
        "the device of each rank; auto: a GPU where there is one; cuda:N: that GPU; emulated: the GPU kernels in host code")
        .also_called({"gpu"}).such_as("cpu"),
    KEY(parallel.backend, one_of(backend_names()),
        "how ranks talk; nccl: gradients stay on GPUs; thread: ranks are threads of one process"),
    KEY(parallel.kernels, one_of<Kernels>(), "kernels on a GPU; native: our own kernels; vendor: cuDNN and cuBLAS"),
    KEY(parallel.graph, one_of<GraphUse>(), "on a GPU: launch whole steps as CUDA graphs"),
    KEY(parallel.ranks, whole<int>(0, 4096), "threads of one process, with backend thread or nccl; otherwise 0, and mpirun or srun says")
        .also_called({"world_size", "workers", "np"}).such_as("2"),
    KEY(parallel.threads, whole<int>(1, StepOptions::kMostThreads), "threads of each rank; they share its grains").also_called({"num_threads"}).such_as("2"),
    KEY(parallel.bucket_bytes, byte_count(), "gradient bytes sent at once; auto: measured on this machine")
        .also_called({"bucket_cap_mb", "bucket_size"}).such_as("1MiB"),
    KEY(parallel.determinism, one_of<Determinism>(),
        "world: the same weights, bit for bit, on any number of ranks, with the range of fp32: only NaN and infinity "
        "stop a run; off: fp32 sums", kWeights)
        .also_called({"deterministic"}),
    KEY(parallel.grain, whole<int>(1, StepOptions::kLargestGrain), "samples that are summed in one piece; part of the job, not of the ranks; a CPU pads it to a multiple of 16",
            Determines::kWeightsInWorldMode).such_as("32"),
    KEY(parallel.split, one_of<BatchSplit>(),
        "how the grains of a batch go to the ranks; even: to all nearly as many; chunk: as torch.chunk does it, equal pieces and what is left, where the last ranks may get none")
        .also_called({"chunking"}),
    KEY(parallel.check_replicas_every_steps, whole(0, kTrillion), "compare the ranks' weights, running statistics and optimiser state after so many steps; 0: only before each evaluation and save").such_as("100"),
    KEY(parallel.replay_every_steps, whole_or_auto(kTrillion, ParallelSection::kAutoReplays), "after so many steps each rank computes the share of the next one again, or each pipeline that of the next pipeline, and a rank that computes wrongly is named before it moves a weight; 100 takes about 1 % of the time; auto: 128 on CPUs, 8192 on GPUs; 0: never").such_as("100"),
    KEY(parallel.timeout_seconds, real({0, 1e9, true}), "how long to wait for other ranks before giving up")
        .also_called({"timeout"}).such_as("60"),
    KEY(parallel.watchdog, yes_or_no(), "ranks under MPI watch each other: a rank that dies, stops or hangs is named at once"),
  };
}

std::vector<JobKey> run_and_inject_keys() {
  using namespace job_keys;
  return {
    KEY(run.dir, path("auto or a directory"),
        "where job.yaml, metrics.jsonl, checkpoints and logs go; auto: runs/JOB, or runs/JOB-2 and so on where that is done or has other weights")
        .also_called({"output", "output_dir", "out", "directory", "folder", "path", "name"}).such_as("runs/first"),
    KEY(run.checkpoint_every_steps, whole(0, kTrillion), "save after so many steps; 0: only at the end, and what run.keep.best asks for").also_called({"save_every"}).such_as("1000"),
    KEY(run.log_every_steps, whole_or_auto(kTrillion, RunSection::kAutoLogs), "write a line to metrics.jsonl after so many steps; auto: after each of the first 100, then about each hundredth of those taken so far, at most 100 apart; 0: only epochs")
        .also_called({"log_interval"}).such_as("10"),
    KEY(run.resume, path("auto, never or a checkpoint directory"),
        "auto: go on from the newest checkpoint in run.dir; never: start anew; or a checkpoint directory").such_as("never"),
    KEY(run.on_save_error, one_of<OnSaveError>(),
        "if a checkpoint cannot be written; stop: with exit code 74; continue: warn and go on training"),
    KEY(run.max_seconds, real({0, 1e9}), "save and stop (exit code 75) after so long; 0: no limit; Slurm's end time always counts")
        .also_called({"max_time", "time_limit"}).such_as("3600"),
    KEY(run.print_loss_every_steps, whole(0, kTrillion),
        "print the mean loss after so many steps of an epoch, as PyTorch's tutorials do: [1, 100] loss: 0.123; 0: never")
        .also_called({"print_every", "log_interval_steps"}).such_as("100"),
    KEY(run.print_shapes, yes_or_no(), "print the sizes of input and output of every batch, on each rank and as a whole"),
    KEY(run.trail, yes_or_no(), "leave fingerprints of each step in trail.bin, by which lockstep prove checks the run; not under parallel.determinism: off"),
    KEY(run.curve, yes_or_no(), "draw the accuracy after each epoch").also_called({"plot"}),
    KEY(run.report, yes_or_no(), "write report.html at the end of the run: curves, classes, mistakes; lockstep report draws it later, too"),
    KEY(run.tensorboard, yes_or_no(), "write event files for TensorBoard into the run directory, scalars while it trains; lockstep report --format tensorboard writes them later, too"),
    KEY(run.trace, steps(), "write what all ranks did in these steps to trace.pftrace, which ui.perfetto.dev shows (docs/timeline.md); at most 1000 steps").such_as("100..110"),
    KEY(run.keep.last, whole(1, kBillion), "so many of the newest checkpoints stay").such_as("1"),
    KEY(run.keep.every_steps, whole(0, kTrillion), "checkpoints whose step is a multiple of this stay, too; 0: none").such_as("5000"),
    KEY(run.keep.best, yes_or_no(), "the checkpoint with the highest accuracy stays, on held-out samples where data.validation asks for them; it is saved when it was measured"),
    KEY(inject.rank, whole(0, kBillion), "the rank that fails on purpose; only with LOCKSTEP_ALLOW_INJECT=1").such_as("1"),
    KEY(inject.step, whole(0, kTrillion), "the step before which it fails, counted from 1; once in a run").such_as("100"),
    KEY(inject.what, fault(), "how it fails: killed, stopped, late, slow from then on, cut off, a wrong weight, or waiting where the others do not"),
  };
}
// clang-format on
#undef KEY
#undef KEY_OF

std::vector<JobKey> make_schema() {
  std::vector<JobKey> schema;
  for (const auto& keys : {model_and_data_keys(), train_keys(), update_keys(), optimizer_keys(),
                           schedule_keys(), parallel_keys(), run_and_inject_keys()})
    schema.insert(schema.end(), keys.begin(), keys.end());
  return schema;
}

}  // namespace

const std::vector<JobKey>& job_schema() {
  static const std::vector<JobKey> schema = make_schema();
  return schema;
}

const JobKey* find_job_key(std::string_view path) {
  const auto key = std::ranges::find(job_schema(), path, &JobKey::path);
  return key == job_schema().end() ? nullptr : &*key;
}

const JobKey* key_called(std::string_view name, std::string_view section) {
  const JobKey* found = nullptr;
  int best = 0;
  for (const JobKey& key : job_schema()) {
    const int nearness = !key.is_called(name) ? 0 : key.section() == section ? 3 : key.leaf() == name ? 2 : 1;
    if (nearness > best) found = &key, best = nearness;
  }
  return found;
}

bool is_job_section(std::string_view path) {
  return !names_in_section(path).empty();
}

std::vector<std::string_view> names_in_section(std::string_view section) {
  std::vector<std::string_view> names;
  for (const JobKey& key : job_schema()) {
    std::string_view rest = key.path;
    if (!section.empty()) {
      if (!rest.starts_with(section) || rest.substr(section.size(), 1) != ".") continue;
      rest.remove_prefix(section.size() + 1);
    }
    const std::string_view name = rest.substr(0, rest.find('.'));
    if (names.empty() || names.back() != name) names.push_back(name);
  }
  return names;
}

}  // namespace lockstep
