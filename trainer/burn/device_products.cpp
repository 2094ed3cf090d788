// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// On a GPU, or the emulator: the first result is proved on the host; the others stay on the device, where their
/// fingerprints add up to a multiple of that of the first.
#include "kernels/cpu/ops.hpp"
#include "kernels/device_ops.hpp"
#include "kernels/sum_cuts.hpp"
#include "trainer/burn/products.hpp"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <functional>
#include <thread>
#include <utility>

namespace lockstep::burn {
namespace {

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
    if (!rank_.is_emulated()) result.measures["products"] = seconds_;
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
    if (const auto wrong = proof.find_wrong(matrix(product, pass, first))) found(product, pass, *wrong);
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
    if (pass != Pass::kWeightGradient) return integers_of(words);
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
  double seconds_ = 0;
};

}  // namespace

std::unique_ptr<BurnCheck> make_device_products(const BurnRank& rank) {
  return std::make_unique<DeviceProducts>(rank);
}

}  // namespace lockstep::burn
