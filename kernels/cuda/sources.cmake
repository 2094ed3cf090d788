# The sources that are compiled twice: by nvcc for GPUs (kernels/cuda) and by the host compiler for the emulator
# (kernels/emulation). Paths from this folder.
set(LOCKSTEP_GPU_SOURCES
  activation.cu
  batch_norm.cu
  channel_bias.cu
  conv2d_backward_data.cu
  conv2d_backward_weights.cu
  conv2d_forward.cu
  device.cu
  epilogue.cu
  exact_sum.cu
  facts.cu
  fingerprint.cu
  gather.cu
  graph.cu
  linear_backward_data.cu
  linear_backward_weights.cu
  linear_forward.cu
  loss.cu
  native_ops.cu
  platform.cu
  pool_avg.cu
  pool_global.cu
  pool_max.cu
  probe.cu
  stream.cu
  update.cu)
