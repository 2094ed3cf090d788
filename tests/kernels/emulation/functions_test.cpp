// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Atomics, arithmetic and vector types of the emulator.
#include "tests/kernels/emulation/rig.hpp"

#include <limits>

namespace lockstep::emulated {
namespace {

using FunctionsTest = EmulatorTest;

__global__ void atomics_kernel(int* i, unsigned* u, unsigned long long* w, float* f) {
  atomicAdd(i, -3);
  atomicAdd(u, 2U);
  atomicAdd(w, ~0ULL);  // minus one
  atomicAdd(f, 0.5F);
}

TEST_F(FunctionsTest, AtomicAdditionsAddUp) {
  const DeviceArray<int> i(1, 0);
  const DeviceArray<unsigned> u(1, 0);
  const DeviceArray<unsigned long long> w(1, 7);
  const DeviceArray<float> f(1, 0);
  launch(nullptr, {4, 100}, atomics_kernel, i.data(), u.data(), w.data(), f.data());
  EXPECT_EQ(i[0], -1200);
  EXPECT_EQ(u[0], 800U);
  EXPECT_EQ(static_cast<long long>(w[0]), -393);
  EXPECT_EQ(f[0], 200.0F);
}

TEST_F(FunctionsTest, AtomicsReturnTheOldValue) {
  int value = 5;
  EXPECT_EQ(atomicMax(&value, 3), 5);
  EXPECT_EQ(atomicMax(&value, 9), 5);
  EXPECT_EQ(atomicMin(&value, 4), 9);
  EXPECT_EQ(atomicCAS(&value, 5, 6), 4);
  EXPECT_EQ(atomicCAS(&value, 4, 6), 4);
  EXPECT_EQ(atomicExch(&value, 8), 6);
  EXPECT_EQ(atomicOr(&value, 3), 8);
  EXPECT_EQ(value, 11);
}

TEST_F(FunctionsTest, RoundingToIntegersIsHalfToEvenAndSaturates) {
  using Limits = std::numeric_limits<long long>;
  EXPECT_EQ(__double2ll_rn(2.5), 2);
  EXPECT_EQ(__double2ll_rn(3.5), 4);
  EXPECT_EQ(__double2ll_rn(-2.5), -2);
  EXPECT_EQ(__double2ll_rn(1e300), Limits::max());
  EXPECT_EQ(__double2ll_rn(-1e300), Limits::min());
  EXPECT_EQ(__double2ll_rn(std::numeric_limits<double>::quiet_NaN()), Limits::min());
  EXPECT_EQ(__float2ll_rn(-0.75F), -1);
}

TEST_F(FunctionsTest, BitFunctionsCountAsOnAGpu) {
  EXPECT_EQ(__popc(0xF0F0U), 8);
  EXPECT_EQ(__clz(1), 31);
  EXPECT_EQ(__clz(0), 32);
  EXPECT_EQ(__ffs(0), 0);
  EXPECT_EQ(__ffs(8), 4);
  EXPECT_EQ(__umulhi(0x80000000U, 6U), 3U);
  EXPECT_EQ(__float_as_uint(1.0F), 0x3F800000U);
  EXPECT_EQ(__uint_as_float(0x40000000U), 2.0F);
}

TEST_F(FunctionsTest, VectorTypesHaveTheAlignmentOfAGpu) {
  static_assert(alignof(uchar4) == 4 && alignof(float2) == 8 && alignof(float4) == 16 && alignof(int4) == 16);
  static_assert(alignof(double2) == 16 && alignof(double4) == 16 && alignof(ushort4) == 8);
  const float4 four = make_float4(1, 2, 3, 4);
  EXPECT_EQ(four.x + four.y + four.z + four.w, 10.0F);
}

}  // namespace
}  // namespace lockstep::emulated
