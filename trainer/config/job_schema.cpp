// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Every key of a job file, described here and nowhere else.
#include "trainer/config/job_schema.hpp"

#include "comm/backend.hpp"
#include "data/dataset.hpp"
#include "data/sets/catalogue.hpp"
#include "trainer/config/job_key.hpp"
#include "trainer/config/optimizers/schedule.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>
#include <utility>

namespace lockstep {
namespace {

constexpr std::int64_t kBillion = 1'000'000'000;
constexpr std::int64_t kTrillion = 1000 * kBillion;
constexpr std::int64_t kMaxSteps = std::numeric_limits<std::uint32_t>::max();  // as wide as PassKey::step
constexpr Determines kWeights = Determines::kWeights;

/// The path of a key and the way to its field, which are spelt alike.
// clang-format off
#define FIELD(path) #path, job_keys::Field([](auto& job) -> decltype(auto) { return (job.path); })

std::vector<JobKey> model_keys() {
  using namespace job_keys;
  return {
    path(FIELD(model), false, "the name of a model or a path to a YAML network",
         "the network: net, lenet, resnet8, resnet20, mlp, linear, or a path to a YAML file, beside the job file or in the current directory", kWeights)
        .also_called({"network", "net", "arch"}),
  };
}

std::vector<JobKey> data_keys() {
  using namespace job_keys;
  return {
    choice(FIELD(data.set), set_names(),
           fmt::format("the data set; idx: your own, in data.root; {}: made in memory", fmt::join(made_sets(), " and ")), kWeights)
        .also_called({"dataset", "name"}),
    path(FIELD(data.root), false, "auto or a directory",
         "where the files are; auto looks where the run had them, in $LOCKSTEP_DATA, ~/.cache/lockstep and /usr/share/datasets")
        .also_called({"path"}),
    integer(FIELD(data.global_batch), {1, kBillion}, "samples of a step, all ranks together; never more than there are", kWeights)
        .also_called({"batch_size", "batch", "batchsize"}),
    integer(FIELD(data.per_rank_batch), {0, kBillion},
            "samples of a step on each rank, as in DistributedDataParallel: global_batch is this times the ranks; 0: global_batch counts")
        .also_called({"local_batch", "batch_per_rank", "per_gpu_batch", "batch_per_gpu", "micro_batch"}),
    channel_numbers(FIELD(data.mean), {-1e6, 1e6}, "subtracted from pixels in [0, 1]; auto: the mean of the set, measured if it is your own", kWeights),
    channel_numbers(FIELD(data.std), {1e-6, 1e6}, "pixels are divided by it after that; auto: the standard deviation of the set", kWeights),
    boolean(FIELD(data.shuffle), "a new order of the training samples in each epoch", kWeights),
    integer(FIELD(data.train_samples), {0, kBillion}, "how many to make, of sets made in memory; 0: their default", kWeights),
    integer(FIELD(data.test_samples), {0, kBillion}, "the same for testing"),
  };
}

std::vector<JobKey> train_keys() {
  using namespace job_keys;
  return {
    integer(FIELD(train.epochs), {1, kBillion}, "passes over the training samples"),
    seed(FIELD(train.seed), "everything random is derived from it", kWeights).also_called({"random_seed"}),
    integer(FIELD(train.max_steps), {0, kMaxSteps}, "stop after so many steps; 0: no limit").also_called({"steps"}),
    path(FIELD(train.initial_weights), true, "a path, or nothing",
         "a safetensors file, a checkpoint or a run directory (its newest good checkpoint) to start from; empty: initialise from the seed", kWeights)
        .also_called({"pretrained", "weights"}),
    real(FIELD(train.initial_scale), {0, 1e6}, "the standard deviation of the initial weights, with biases of 0; 0: as the model says", kWeights)
        .also_called({"init_scale", "scale", "init_std", "init"}),
  };
}

std::vector<JobKey> optimizer_keys() {
  using namespace job_keys;
  return {
    choice(FIELD(train.optimizer.kind), optimizer_names(), "the update rule", kWeights).also_called({"name", "type"}),
    real(FIELD(train.optimizer.lr), {0, 1e6, true}, "learning rate; the highest one where a schedule goes up and down", kWeights)
        .also_called({"learning_rate", "rate", "max_lr", "base_lr"}),
    real(FIELD(train.optimizer.momentum), {0, 1, false, true}, "share of the last update that is carried on; 0: none", kWeights),
    real(FIELD(train.optimizer.weight_decay), {0, 1e6}, "added to the gradient, times the weight; adamw: taken from the weight, times the rate", kWeights)
        .also_called({"wd", "decay", "l2"}),
    boolean(FIELD(train.optimizer.nesterov), "look ahead along the momentum", kWeights),
    reals(FIELD(train.optimizer.betas), {0, 1, false, true}, 2, "a list of two numbers from 0, below 1, such as [0.9, 0.999]",
          "shares of the running means of gradient and squared gradient that are carried on", kWeights)
        .also_called({"beta", "beta1", "beta2"}),
    real(FIELD(train.optimizer.eps), {0, 1, true}, "added to the divisor", kWeights).also_called({"epsilon"}),
    real(FIELD(train.optimizer.alpha), {0, 1, false, true}, "share of the running mean of the squared gradient that is carried on", kWeights),
    real(FIELD(train.optimizer.trust_coefficient), {0, 1e6, true}, "the rate of a tensor is this times the norm of its weights over that of its gradient", kWeights),
    boolean(FIELD(train.optimizer.decay_biases), "weight decay for tensors of one dimension, too: biases and norms", kWeights)
        .also_called({"no_bias_decay", "bias_decay"}),
    choice(FIELD(train.optimizer.lr_scaling.rule), lr_scaling_rules(),
           "lr is multiplied by global_batch / base_batch, by the square root of that, or not", kWeights),
    integer(FIELD(train.optimizer.lr_scaling.base_batch), {1, kBillion}, "the global batch that lr is meant for", kWeights),
  };
}

std::vector<JobKey> schedule_keys() {
  using namespace job_keys;
  return {
    choice(FIELD(train.schedule.kind), schedule_names(), "how the learning rate changes during the run", kWeights)
        .also_called({"name", "type", "scheduler", "lr_scheduler", "lr_schedule"}),
    choice(FIELD(train.schedule.by), {"epoch", "step"}, "when the rate changes, and what step_size, milestones and total count; one_cycle: step", kWeights)
        .also_called({"unit", "interval"}),
    integer(FIELD(train.schedule.step_size), {1, kTrillion}, "the rate falls whenever so many have passed", kWeights),
    integers(FIELD(train.schedule.milestones), {1, kTrillion}, "a list of whole numbers from 1 on such as [30, 80]",
             "the rate falls when so many have passed", kWeights),
    real(FIELD(train.schedule.gamma), {0, 1e6, true}, "what the rate is multiplied by when it falls", kWeights).also_called({"decay_rate"}),
    real(FIELD(train.schedule.power), {0, 100, true}, "of the share of the schedule that is left", kWeights),
    real(FIELD(train.schedule.min_lr), {0, 1e6}, "the rate at the end", kWeights).also_called({"eta_min", "end_lr"}),
    integer(FIELD(train.schedule.total), {0, kTrillion}, "how long the schedule is, after its warm-up; 0: to the end of train.epochs", kWeights)
        .also_called({"T_max", "total_iters", "total_steps", "t_max"}),
    real(FIELD(train.schedule.pct_start), {0, 1, true, true}, "the share of the schedule during which the rate goes up", kWeights),
    real(FIELD(train.schedule.div_factor), {1, 1e9}, "the rate starts at lr divided by this", kWeights),
    real(FIELD(train.schedule.final_div_factor), {1, 1e12}, "and ends at its start divided by this", kWeights),
    choice(FIELD(train.schedule.anneal), {"cos", "linear"}, "the way from one rate to the next", kWeights).also_called({"anneal_strategy"}),
    boolean(FIELD(train.schedule.cycle_momentum), "momentum (betas[0]) goes the other way: from max_momentum to base_momentum and back", kWeights),
    real(FIELD(train.schedule.base_momentum), {0, 1, false, true}, "the momentum where the rate is highest", kWeights),
    real(FIELD(train.schedule.max_momentum), {0, 1, false, true}, "the momentum at start and end", kWeights),
    integer(FIELD(train.schedule.warmup_epochs), {0, kBillion}, "epochs in which the rate goes up in a line; the schedule counts from their end", kWeights)
        .also_called({"warmup"}),
    integer(FIELD(train.schedule.warmup_steps), {0, kTrillion}, "the same in steps", kWeights),
    real(FIELD(train.schedule.warmup_start), {0, 1}, "the share of the rate that the warm-up starts from", kWeights)
        .also_called({"start_factor", "warmup_factor", "warmup_start_factor"}),
  };
}

std::vector<JobKey> parallel_keys() {
  using namespace job_keys;
  return {
    choice(FIELD(parallel.strategy), strategy_names(), "what ranks share; data: the samples of a batch, each rank has the whole network; pipeline: the layers; hogwild: one set of weights, moved without locks")
        .also_called({"mode", "type"}),
    stages(FIELD(parallel.stages),
           "where the network is cut; a number: so many stages of about equal work; auto: one for each rank"),
    placement(FIELD(parallel.placement), "the rank of each stage within its pipeline; auto: one after the other, and from 0 again")
        .also_called({"devices", "device_ids"}),
    choice(FIELD(parallel.schedule),
           "1f1b: backward as soon as there is one, few grains in flight; gpipe: all forward passes first"),
    device(FIELD(parallel.device),
           "what each rank computes on; auto: a GPU where there is one; cuda:N: that GPU; emulated: the GPU kernels in host code")
        .also_called({"gpu"}),
    choice(FIELD(parallel.backend), backend_names(),
           "how ranks talk; nccl: gradients stay on GPUs; thread: ranks are threads of one process"),
    choice(FIELD(parallel.kernels), "on a GPU: hand-written kernels, or cuDNN and cuBLAS"),
    choice(FIELD(parallel.graph), "on a GPU: launch whole steps as CUDA graphs; the bits are the same"),
    integer(FIELD(parallel.ranks), {0, 4096}, "threads of one process, with backend thread or nccl; otherwise 0, and mpirun or srun says")
        .also_called({"world_size", "workers", "np"}),
    integer(FIELD(parallel.threads), {1, 1024}, "of each rank; they share its grains").also_called({"num_threads"}),
    byte_count(FIELD(parallel.bucket_bytes), "gradient bytes sent at once; auto: measured on this machine")
        .also_called({"bucket_cap_mb", "bucket_size"}),
    choice(FIELD(parallel.determinism),
           "world: the same weights, bit for bit, on any number of ranks, with the range of fp32: only NaN and infinity "
           "stop a run; off: fp32 sums", kWeights)
        .also_called({"deterministic"}),
    integer(FIELD(parallel.grain), {1, 4096}, "samples that are summed in one piece; part of the job, not of the ranks; a CPU pads it to a multiple of 16",
            Determines::kWeightsInWorldMode),
    choice(FIELD(parallel.split),
           "a batch's grains over the ranks: all nearly as many; or, as torch.chunk does it, equal pieces and what is left, where the last ranks may get none")
        .also_called({"chunking"}),
    boolean(FIELD(parallel.count_lost_updates), "count how often one rank overwrote what another had just written; slower")
        .also_called({"lost_updates"}),
    integer(FIELD(parallel.check_replicas_every_steps), {0, kTrillion}, "compare the ranks' weights so often; 0: never"),
    real(FIELD(parallel.timeout_seconds), {0, 1e9, true}, "how long to wait for other ranks before giving up")
        .also_called({"timeout"}),
    boolean(FIELD(parallel.watchdog), "ranks under MPI watch each other: who dies, stops or hangs is named at once"),
  };
}

std::vector<JobKey> run_keys() {
  using namespace job_keys;
  return {
    path(FIELD(run.dir), false, "auto or a directory",
         "where job.yaml, metrics.jsonl, checkpoints and logs go; auto: runs/JOB, or runs/JOB-2 and so on where that is done or has other weights")
        .also_called({"output", "output_dir", "out"}),
    integer(FIELD(run.checkpoint_every_steps), {0, kTrillion}, "save so often; 0: only at the end, and what run.keep.best asks for").also_called({"save_every"}),
    integer(FIELD(run.log_every_steps), {0, kTrillion}, "write a step line so often; 0: only epochs")
        .also_called({"log_interval"}),
    path(FIELD(run.resume), false, "auto, never or a checkpoint directory",
         "auto: go on from the newest checkpoint in run.dir; never: start anew; or a checkpoint directory"),
    choice(FIELD(run.on_save_error), {"stop", "continue"},
           "a checkpoint cannot be written: stop with exit code 74, or warn and go on training"),
    real(FIELD(run.max_seconds), {0, 1e9}, "save and stop (exit code 75) after so long; 0: no limit; Slurm's end time always counts")
        .also_called({"max_time", "time_limit"}),
    integer(FIELD(run.print_loss_every_steps), {0, kTrillion},
            "print the mean loss of so many steps of an epoch, as PyTorch's tutorials do: [1,   100] loss: 0.123; 0: never")
        .also_called({"print_every", "log_interval_steps"}),
    boolean(FIELD(run.print_shapes), "print the sizes of input and output of every batch, on each rank and as a whole"),
    boolean(FIELD(run.trail), "leave fingerprints of each step in trail.bin, by which lockstep prove checks the run; not under parallel.determinism: off"),
    boolean(FIELD(run.curve), "draw the test accuracy after each epoch, and leave it as curve.svg in the run directory").also_called({"plot"}),
    integer(FIELD(run.keep.last), {1, kBillion}, "checkpoints that stay: the newest so many"),
    integer(FIELD(run.keep.every_steps), {0, kTrillion}, "and those whose step is a multiple of this; 0: none"),
    boolean(FIELD(run.keep.best), "and the one with the highest test accuracy, saved when it was measured"),
  };
}

std::vector<JobKey> inject_keys() {
  using namespace job_keys;
  return {
    integer(FIELD(inject.rank), {0, kBillion}, "the rank that fails on purpose; only with LOCKSTEP_ALLOW_INJECT=1"),
    integer(FIELD(inject.step), {0, kTrillion}, "before which step, counted from 1; once in a run"),
    fault(FIELD(inject.what), "how: killed, stopped, late, slow from then on, cut off, a wrong weight, or waiting where the others do not"),
  };
}
// clang-format on
#undef FIELD

std::vector<JobKey> make_schema() {
  std::vector<JobKey> schema;
  for (const auto& keys : {model_keys(), data_keys(), train_keys(), optimizer_keys(), schedule_keys(),
                           parallel_keys(), run_keys(), inject_keys()})
    schema.insert(schema.end(), keys.begin(), keys.end());
  return schema;
}

}  // namespace

const std::vector<JobKey>& job_schema() {
  static const std::vector<JobKey> schema = make_schema();
  return schema;
}

const JobKey* find_job_key(std::string_view path) {
  const auto& schema = job_schema();
  const auto key =
      std::find_if(schema.begin(), schema.end(), [&](const JobKey& k) { return k.path == path; });
  return key == schema.end() ? nullptr : &*key;
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
