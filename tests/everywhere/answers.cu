/* As answers.c, by a GPU: a thread for each position, with the shuffle that the host made and one
   that the thread makes itself. Fails with CUDA's message where there is no GPU. */
#include <indexplan/shuffle_v1.h>

#include <stdio.h>
#include <stdlib.h>

#define THREADS 256

__global__ void answer(shuffle_v1 s, uint64_t n, uint64_t low, uint64_t high, uint64_t epoch,
                       uint64_t start, size_t num, uint64_t *out) {
  const size_t i = blockIdx.x * (size_t)THREADS + threadIdx.x;
  if (i >= num) return;
  const shuffle_v1 own = shuffle_v1_make(n, low, high, epoch);
  const uint64_t position = start + i < start ? SHUFFLE_V1_NONE : start + i; /* past 2**64 */
  const uint64_t index = shuffle_v1_index(&s, position);
  const bool is_right = index == shuffle_v1_index(&own, position) &&
                        shuffle_v1_position(&s, index) == (position < s.n ? position : SHUFFLE_V1_NONE) &&
                        shuffle_v1_index(&s, s.n) == SHUFFLE_V1_NONE;
  out[i] = is_right ? index : ~index;
}

static void check(cudaError_t error) {
  if (error == cudaSuccess) return;
  fprintf(stderr, "%s\n", cudaGetErrorString(error));
  exit(1);
}

int main(void) {
  uint64_t run[6];
  while (fread(run, sizeof run, 1, stdin) == 1) {
    const size_t num = (size_t)run[5];
    if (num == 0) continue;
    uint64_t *out;
    check(cudaMallocManaged(&out, num * sizeof *out));
    const shuffle_v1 s = shuffle_v1_make(run[0], run[1], run[2], run[3]);
    const unsigned blocks = (unsigned)((num + THREADS - 1) / THREADS);
    answer<<<blocks, THREADS>>>(s, run[0], run[1], run[2], run[3], run[4], num, out);
    check(cudaGetLastError());
    check(cudaDeviceSynchronize());
    fwrite(out, sizeof *out, num, stdout);
    check(cudaFree(out));
  }
  return 0;
}
