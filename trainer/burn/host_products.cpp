// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// On CPUs: the first result is proved. The others are compared with it bit for bit, which costs next to nothing, so
/// that the cores are kept busy.
#include "common/buffers.hpp"
#include "common/text_layout.hpp"
#include "kernels/cpu/ops.hpp"
#include "kernels/cpu/simd_choice.hpp"
#include "kernels/sum_cuts.hpp"
#include "trainer/burn/products.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <ctime>
#include <functional>
#include <limits>
#include <utility>

namespace lockstep::burn {
namespace {

/// An op on a CPU: what it writes, and what that says.
class HostProduct {
 public:
  HostProduct(const ProductCase& product, Pass pass) : case_(product), pass_(pass) {}

  std::size_t size() const {
    const Conv2dShape& s = case_.shape;
    if (pass_ == Pass::kWeightGradient) return gradients() * static_cast<std::size_t>(terms());
    return pass_ == Pass::kForward ? s.out_size() : s.in_size();
  }

  void run(const AlignedBuffer<float>& x, const AlignedBuffer<float>& w, const AlignedBuffer<float>& b,
           const AlignedBuffer<float>& dy, float* out) const {
    const Conv2dShape& s = case_.shape;
    switch (pass_) {
      case Pass::kForward:
        return case_.is_linear ? cpu::linear_forward(case_.linear(), x.data(), w.data(), b.data(), out)
                               : cpu::conv2d_forward(s, x.data(), w.data(), b.data(), out);
      case Pass::kDataGradient:
        return case_.is_linear ? cpu::linear_backward_data(case_.linear(), dy.data(), w.data(), out)
                               : cpu::conv2d_backward_data(s, dy.data(), w.data(), nullptr, out);
      case Pass::kWeightGradient:
        if (case_.is_linear)
          return cpu::linear_backward_weights(case_.linear(), x.data(), dy.data(), out,
                                              out + s.weight_size());
        return cpu::conv2d_backward_weights(s, GradientSplit(s, s.batch), x.data(), dy.data(),
                                            {out, out + s.weight_size(), gradients()});
    }
  }

  /// As ProductProof has it.
  std::vector<std::int64_t> matrix(std::span<const float> out) const {
    if (pass_ != Pass::kWeightGradient) return integers_of(out);
    std::vector<std::int64_t> sums(gradients());
    for (std::size_t i = 0; i < out.size(); ++i)
      sums[i % gradients()] += integer_of(out[i]) % (std::int64_t{1} << 40);
    return transposed(case_.shape, sums);
  }

 private:
  std::size_t gradients() const {
    return case_.shape.weight_size() + static_cast<std::size_t>(case_.shape.out_channels);
  }
  int terms() const { return case_.is_linear ? 1 : GradientSplit(case_.shape, case_.shape.batch).terms; }

  const ProductCase& case_;
  Pass pass_;
};

/// Of the processor's time: what others take of a core does not count.
double thread_seconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

AlignedBuffer<float> aligned(const std::vector<float>& numbers) {
  AlignedBuffer<float> buffer(numbers.size());
  std::ranges::copy(numbers, buffer.data());
  return buffer;
}

class HostProducts final : public ProductCheck {
 public:
  using ProductCheck::ProductCheck;

  void work(const Slice& slice, std::int64_t round) override {
    measure_peak();
    ProductCheck::work(slice, round);
  }

  void report(RankResult& result) const override {
    double flops = 0, seconds = 0;
    for (const auto& [name, best] : best_) {
      flops += best.flops;
      seconds += best.seconds;
    }
    const double share = peak_ > 0 && seconds > 0 ? flops / seconds / peak_ : 0;
    report_counts(result,
                  fmt::format(", {:.0f} % of the peak of {:.0f} GFLOP/s a core", 100 * share, peak_ * 1e-9));
    result.measures["clock"] = peak_;
    result.measures["products"] = seconds;
    result.measures["share of peak"] = share;
    result.measures["share of core"] = computed_ / passed_;
  }

 private:
  /// Of a product: its arithmetic, and the processor's time of the quickest call.
  struct Best {
    double flops = 0, seconds = std::numeric_limits<double>::max();
  };

  /// The best of all threads and rounds: other programs may share the cores.
  void measure_peak() {
    std::vector<double> peaks(static_cast<std::size_t>(rank_.pool.threads()));
    rank_.pool.run([&](int thread) { peaks[static_cast<std::size_t>(thread)] = peak_of_this_thread(); });
    const double slowed = rank_.commits("clock") ? 0.5 : 1;
    peak_ = std::max(peak_, slowed * *std::ranges::max_element(peaks));
  }

  /// Again while the thread had no core for most of the time.
  static double peak_of_this_thread() {
    constexpr double kSeconds = 0.02;
    constexpr int kMostTries = 20;
    double peak = 0, computed = 0;
    for (int i = 0; i < kMostTries && computed < kSeconds / 2; ++i) {
      const double before = thread_seconds();
      peak = std::max(peak, cpu::measure_fma_peak(kSeconds));
      computed = thread_seconds() - before;
    }
    return peak;
  }

  void burn(const ProductCase& product, Pass pass, std::uint64_t seed, const Slice& slice) override {
    const ProductOperands operands = make_operands(product, seed);
    const ProductProof proof(product, pass, operands, seed);
    const AlignedBuffer<float> x = aligned(operands.x), w = aligned(operands.w), b = aligned(operands.b),
                               dy = aligned(operands.dy);
    const HostProduct op(product, pass);
    AlignedBuffer<float> answer(op.size());
    const auto run = [&](float* out, std::int64_t call) {
      op.run(x, w, b, dy, out);
      spoil(out, call);
    };
    run(answer.data(), 0);
    if (const auto wrong = proof.find_wrong(op.matrix(std::as_const(answer).span())))
      found(product, pass, *wrong);
    rank_.pool.run([&](int /*thread*/) { repeat(product, pass, run, answer, slice); });
  }

  /// On each thread.
  void repeat(const ProductCase& product, Pass pass,
              const std::function<void(float* out, std::int64_t call)>& run,
              const AlignedBuffer<float>& answer, const Slice& slice) {
    AlignedBuffer<float> out(answer.size());
    const auto began = Clock::now();
    const double began_computing = thread_seconds();
    double best = std::numeric_limits<double>::max();
    std::int64_t calls = 0;
    do {
      const double start = thread_seconds();
      run(out.data(), ++calls);
      if (std::memcmp(out.data(), answer.data(), out.size() * sizeof(float)) != 0)
        found(fmt::format("{}: {}", name_of(product, pass), difference(out, answer)));
      stretch(start);
      best = std::min(best, thread_seconds() - start);
    } while (!slice.is_over() || calls < kLeastCalls);
    count(calls, static_cast<double>(calls) * product.shape.flops());
    const std::lock_guard lock(mutex_);
    computed_ += thread_seconds() - began_computing;
    passed_ += seconds_since(began);
    Best& of_all = best_[name_of(product, pass)];
    of_all = {product.shape.flops(), std::min(of_all.seconds, best)};
  }

  static std::string difference(const AlignedBuffer<float>& out, const AlignedBuffer<float>& answer) {
    std::size_t at = 0, wrong = 0;
    for (std::size_t i = out.size(); i-- > 0;)
      if (std::memcmp(&out[i], &answer[i], sizeof(float)) != 0) at = i, ++wrong;
    return fmt::format("{} differ from the first, proved result; number {} (lane {}) is {} in place of {}",
                       counted(wrong, "number"), at, at % cpu::kLanes, out[at], answer[at]);
  }

  // Faults on purpose.
  void spoil(float* out, std::int64_t call) const {
    if (rank_.commits("lane") || (rank_.commits("rare-lane") && call > 0)) out[5] += 1;
  }
  void stretch(double start) const {
    if (!rank_.commits("slow-rank")) return;
    const double taken = thread_seconds() - start;
    while (thread_seconds() - start < 3 * taken) {
    }
  }

  static constexpr std::int64_t kLeastCalls = 8;  ///< of a thread, of which the quickest counts

  double peak_ = 0;
  std::mutex mutex_;
  std::map<std::string, Best> best_;
  double computed_ = 0, passed_ = 0;  ///< seconds of all threads on a core, and altogether
};

}  // namespace

std::unique_ptr<BurnCheck> make_host_products(const BurnRank& rank) {
  return std::make_unique<HostProducts>(rank);
}

}  // namespace lockstep::burn
