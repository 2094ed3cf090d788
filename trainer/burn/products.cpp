// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The kernels that training uses, on numbers of which the answer is known. The first result of a round is proved; the
/// others are compared with it bit for bit, which costs next to nothing, so that the processor is kept busy.
#include "common/buffers.hpp"
#include "common/text_layout.hpp"
#include "kernels/cpu/ops.hpp"
#include "kernels/cpu/simd_choice.hpp"
#include "kernels/device_ops.hpp"
#include "kernels/sum_cuts.hpp"
#include "trainer/burn/check.hpp"
#include "trainer/burn/exact_product.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <ctime>
#include <limits>
#include <mutex>
#include <utility>

namespace lockstep::burn {
namespace {

constexpr std::array kPasses{Pass::kForward, Pass::kDataGradient, Pass::kWeightGradient};
constexpr const char* kProcessorFix =
    "take this processor out of service; run it alone (mpirun -np 1, another core or GPU) to see whether the "
    "fault stays";

std::vector<ProductCase> cases_for(const BurnRank& rank) {
  if (rank.is_emulated())
    return {{"conv2d 4@3x3 of 3x6x6", {4, 3, 6, 6, 4, 3, 3}, false},
            {"linear 24-10", {4, 24, 1, 1, 10, 1, 1}, true}};
  const int times = rank.device.gpu == nullptr ? 1 : 16;
  return {{"conv2d 50@5x5 of 20x13x13", {32 * times, 20, 13, 13, 50, 5, 5}, false},
          {"conv2d 64@3x3 of 64x10x10", {32 * times, 64, 10, 10, 64, 3, 3}, false},
          {"linear 800-128", {64 * times, 800, 1, 1, 128, 1, 1}, true}};
}

/// The terms of a gradient of weights, added up; [weights of a filter, then the bias][filters].
std::vector<std::int64_t> transposed(const Conv2dShape& s, const std::vector<std::int64_t>& dw_and_db) {
  const auto filters = static_cast<std::size_t>(s.out_channels);
  const std::size_t size = s.weight_size() / filters;
  std::vector<std::int64_t> result((size + 1) * filters);
  for (std::size_t k = 0; k < filters; ++k) {
    for (std::size_t tap = 0; tap < size; ++tap) result[tap * filters + k] = dw_and_db[k * size + tap];
    result[size * filters + k] = dw_and_db[s.weight_size() + k];
  }
  return result;
}

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
    if (pass_ != Pass::kWeightGradient) {
      std::vector<std::int64_t> result(out.size());
      std::ranges::transform(out, result.begin(), integer_of);
      return result;
    }
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

/// "row 7, sample 5 (lane 5)"
std::string place_of(const WrongNumber& wrong, Pass pass) {
  if (!wrong.column) return fmt::format("several numbers of row {}", wrong.row);
  if (pass == Pass::kWeightGradient) return fmt::format("weight {} of filter {}", wrong.row, *wrong.column);
  return fmt::format("row {}, sample {} (lane {})", wrong.row, *wrong.column, *wrong.column % cpu::kLanes);
}

/// What all ways to compute products count and find.
class ProductCheck : public BurnCheck {
 public:
  explicit ProductCheck(const BurnRank& rank) : rank_(rank), cases_(cases_for(rank)) {}

  void work(const Slice& slice, std::int64_t round) override {
    const double seconds = slice.seconds() / static_cast<double>(cases_.size() * kPasses.size());
    for (const ProductCase& product : cases_)
      for (const Pass pass : kPasses) {
        const std::uint64_t seed = burn_key(static_cast<std::uint64_t>(round), product.shape.in_size());
        burn(product, pass, seed, Slice(slice.is_over() ? 0 : seconds));
        rank_.tick("products");
      }
  }

 protected:
  virtual void burn(const ProductCase& product, Pass pass, std::uint64_t seed, const Slice& slice) = 0;

  void found(const std::string& what) {
    const std::lock_guard lock(mutex_);
    ++wrong_;
    if (first_wrong_.empty()) first_wrong_ = what;
  }
  void count(std::int64_t products, double flops) {
    const std::lock_guard lock(mutex_);
    products_ += products;
    flops_ += flops;
  }
  void report_counts(RankResult& result, const std::string& load) const {
    result.exercised["products"] =
        fmt::format("{}, {:.1f} GFLOP, {} kernels at {} shapes{}", counted(products_, "product"),
                    flops_ * 1e-9, kPasses.size() * 2, cases_.size(), load);
    if (wrong_ > 0)
      result.findings.push_back({Grade::kWrong, "product",
                                 fmt::format("{} of {} wrong; the first: {}", with_thousands(wrong_),
                                             counted(products_, "product"), first_wrong_),
                                 kProcessorFix});
  }

  const BurnRank rank_;
  const std::vector<ProductCase> cases_;

 private:
  std::mutex mutex_;
  std::int64_t products_ = 0, wrong_ = 0;
  double flops_ = 0;
  std::string first_wrong_;
};

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
  }

 private:
  struct Best {
    double flops = 0, seconds = std::numeric_limits<double>::max();
  };

  /// The best of all threads and rounds: other programs may share the cores.
  void measure_peak() {
    constexpr double kSeconds = 0.02;
    std::vector<double> peaks(static_cast<std::size_t>(rank_.pool.threads()));
    rank_.pool.run(
        [&](int thread) { peaks[static_cast<std::size_t>(thread)] = cpu::measure_fma_peak(kSeconds); });
    const double slowed = rank_.commits("clock") ? 0.5 : 1;
    peak_ = std::max(peak_, slowed * *std::ranges::max_element(peaks));
  }

  void burn(const ProductCase& product, Pass pass, std::uint64_t seed, const Slice& slice) override {
    const ProductOperands operands = make_operands(product, seed);
    const ProductProof proof(product, pass, operands, seed);
    const AlignedBuffer<float> x = aligned(operands.x), w = aligned(operands.w), b = aligned(operands.b),
                               dy = aligned(operands.dy);
    const HostProduct op(product, pass);
    AlignedBuffer<float> answer(op.size());
    std::vector<Best> best(static_cast<std::size_t>(rank_.pool.threads()));
    const auto run = [&](float* out, std::int64_t call) {
      op.run(x, w, b, dy, out);
      spoil(out, call);
    };
    run(answer.data(), 0);
    if (const auto wrong = proof.find_wrong(op.matrix(std::as_const(answer).span())))
      found(fmt::format("{}: {}", name_of(product, pass), place_of(*wrong, pass)));
    rank_.pool.run([&](int thread) {
      AlignedBuffer<float> out(op.size());
      Best& mine = best[static_cast<std::size_t>(thread)];
      std::int64_t calls = 0;
      do {
        const double start = thread_seconds();
        run(out.data(), ++calls);
        if (std::memcmp(out.data(), answer.data(), op.size() * sizeof(float)) != 0)
          found(fmt::format("{}: {}", name_of(product, pass), difference(out, answer)));
        stretch(start);
        mine.seconds = std::min(mine.seconds, thread_seconds() - start);
      } while (!slice.is_over() || calls < kLeastCalls);
      count(calls, static_cast<double>(calls) * product.shape.flops());
    });
    Best& of_all = best_[name_of(product, pass)];
    of_all.flops = product.shape.flops();
    for (const Best& of_thread : best) of_all.seconds = std::min(of_all.seconds, of_thread.seconds);
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

  static constexpr std::int64_t kLeastCalls = 3;  ///< of a thread, of which the quickest counts

  double peak_ = 0;
  std::map<std::string, Best> best_;
};

/// On a GPU, or the emulator: results stay there, and their fingerprints are compared.
class DeviceProducts final : public ProductCheck {
 public:
  explicit DeviceProducts(const BurnRank& rank)
      : ProductCheck(rank),
        device_(*rank.device.gpu->device),
        ops_(*rank.device.gpu->ops),
        stream_(device_.make_stream()),
        state_(device_, 1),
        part_(device_, 1),
        row_(device_, 1) {
    const StepState state;
    stream_->copy_to_device(state_.data(), &state, sizeof state);
    stream_->synchronize();
  }

  void report(RankResult& result) const override {
    report_counts(result, "");
    if (seconds_ < std::numeric_limits<double>::max()) result.measures["products"] = seconds_;
  }

 private:
  void burn(const ProductCase& product, Pass pass, std::uint64_t seed, const Slice& slice) override {
    const ProductOperands operands = make_operands(product, seed);
    const ProductProof proof(product, pass, operands, seed);
    const DeviceBuffer<float> x = upload(operands.x), w = upload(operands.w), b = upload(operands.b),
                              dy = upload(operands.dy);
    const Conv2dShape& s = product.shape;
    const std::size_t gradients = s.weight_size() + static_cast<std::size_t>(s.out_channels);
    const std::size_t words = pass == Pass::kWeightGradient ? 2 * gradients
                              : pass == Pass::kForward      ? s.out_size()
                                                            : s.in_size();
    const DeviceBuffer<float> out(device_, words);
    const auto run = [&] { queue(product, pass, x, w, b, dy, out); };
    run();
    std::vector<float> first = download(out);
    if (rank_.commits("lane")) first[5] += 1;
    if (const auto wrong = proof.find_wrong(matrix(product, pass, first)))
      found(fmt::format("{}: {}", name_of(product, pass), place_of(*wrong, pass)));
    repeat(run, out, cpu::fingerprint(kWeightsBuffer, 0, std::span<const float>(first)),
           name_of(product, pass), s.flops(), slice);
  }

  /// Series of calls, whose fingerprints add up.
  void repeat(const std::function<void()>& run, const DeviceBuffer<float>& out, std::uint64_t fingerprint,
              const std::string& name, double flops, const Slice& slice) {
    const KeptPart part{.floats = out.data(), .size = out.size()};
    stream_->copy_to_device(part_.data(), &part, sizeof part);
    const std::int64_t calls = rank_.is_emulated() ? 2 : 32;
    do {
      const auto start = Clock::now();
      stream_->fill_zero(row_.data(), row_.bytes());
      for (std::int64_t i = 0; i < calls; ++i) {
        run();
        ops_.fingerprint_kept(*stream_, {part_.data(), 1, 1, row_.data(), state_.data()});
      }
      std::int64_t sum = 0;
      stream_->copy_to_host(&sum, row_.data(), sizeof sum);
      stream_->synchronize();
      if (rank_.commits("rare-lane")) ++sum;
      if (rank_.commits("slow-rank")) std::this_thread::sleep_for(std::chrono::milliseconds(100));
      if (static_cast<std::uint64_t>(sum) != fingerprint * static_cast<std::uint64_t>(calls))
        found(name + ": the fingerprint of a later result differs from that of the first");
      seconds_of_[name] = std::min(seconds_of_.try_emplace(name, 1e30).first->second, seconds_since(start));
      count(calls, static_cast<double>(calls) * flops);
    } while (!slice.is_over());
    seconds_ = 0;
    for (const auto& [its_name, seconds] : seconds_of_) seconds_ += seconds;
  }

  void queue(const ProductCase& product, Pass pass, const DeviceBuffer<float>& x,
             const DeviceBuffer<float>& w, const DeviceBuffer<float>& b, const DeviceBuffer<float>& dy,
             const DeviceBuffer<float>& out) {
    const Conv2dShape& s = product.shape;
    Stream& stream = *stream_;
    if (pass == Pass::kForward) {
      if (product.is_linear)
        return ops_.linear_forward(stream, product.linear(), x.data(), w.data(), b.data(), {}, nullptr,
                                   out.data(), nullptr);
      return ops_.conv2d_forward(stream, s, x.data(), w.data(), b.data(), {}, nullptr, out.data(), nullptr);
    }
    if (pass == Pass::kDataGradient) {
      if (product.is_linear)
        return ops_.linear_backward_data(stream, product.linear(), dy.data(), w.data(), nullptr, out.data());
      return ops_.conv2d_backward_data(stream, s, dy.data(), w.data(), nullptr, nullptr, out.data());
    }
    auto* sums = reinterpret_cast<std::int64_t*>(out.data());
    stream.fill_zero(sums, out.bytes());
    const ExactFormat format = exact_format(pieces(s.batch, kGrain));
    const ExactGradient to{{sums, format, {refused(), nullptr}},
                           {sums + s.weight_size(), format, {refused(), nullptr}}};
    if (product.is_linear)
      return ops_.linear_backward_weights(stream, product.linear(), kGrain, x.data(), dy.data(), to);
    ops_.conv2d_backward_weights(stream, s, kGrain, x.data(), dy.data(), to);
  }

  static std::vector<std::int64_t> matrix(const ProductCase& product, Pass pass,
                                          const std::vector<float>& words) {
    if (pass != Pass::kWeightGradient) return HostProduct(product, pass).matrix(words);
    std::vector<std::int64_t> sums(words.size() / 2);
    std::memcpy(sums.data(), words.data(), words.size() * sizeof(float));
    for (std::int64_t& sum : sums) sum = integer_of(static_cast<float>(from_exact(sum)));
    return transposed(product.shape, sums);
  }

  DeviceBuffer<float> upload(const std::vector<float>& numbers) {
    DeviceBuffer<float> buffer(device_, numbers.size());
    stream_->copy_to_device(buffer.data(), numbers.data(), buffer.bytes());
    stream_->synchronize();
    return buffer;
  }
  std::vector<float> download(const DeviceBuffer<float>& buffer) {
    std::vector<float> numbers(buffer.size());
    stream_->copy_to_host(numbers.data(), buffer.data(), buffer.bytes());
    stream_->synchronize();
    return numbers;
  }
  /// Behind the fields that counters of a step are: what is refused there is a wrong sum, too.
  std::int64_t* refused() { return state_.data()->sums + kRefused; }

  static constexpr int kGrain = 64;

  Device& device_;
  DeviceOps& ops_;
  std::unique_ptr<Stream> stream_;
  DeviceBuffer<StepState> state_;
  DeviceBuffer<KeptPart> part_;
  DeviceBuffer<std::int64_t> row_;
  std::map<std::string, double> seconds_of_;
  double seconds_ = std::numeric_limits<double>::max();
};

}  // namespace

std::unique_ptr<BurnCheck> make_products(const BurnRank& rank) {
  if (rank.device.gpu == nullptr) return std::make_unique<HostProducts>(rank);
  return std::make_unique<DeviceProducts>(rank);
}

}  // namespace lockstep::burn
