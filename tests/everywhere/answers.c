/* Reads runs as six uint64 each: n, the seed's low and high half, epoch, start, num. Writes their
   indices by fill, or the complement of one on which index or position do not agree. */
#include <indexplan/shuffle_v1.h>

#include <stdio.h>
#include <stdlib.h>

int main(void) {
  uint64_t run[6];
  while (fread(run, sizeof run, 1, stdin) == 1) {
    const shuffle_v1 s = shuffle_v1_make(run[0], run[1], run[2], run[3]);
    const uint64_t start = run[4];
    const size_t num = (size_t)run[5];
    uint64_t *out = (uint64_t *)malloc((num + 1) * sizeof *out);
    if (!out) return 2;
    shuffle_v1_fill(&s, start, num, out);
    for (size_t i = 0; i < num; i++) {
      const uint64_t index = out[i], position = start + i;
      const int is_past = position < start || position >= s.n;
      if (index != (is_past ? SHUFFLE_V1_NONE : shuffle_v1_index(&s, position)) ||
          shuffle_v1_position(&s, index) != (is_past ? SHUFFLE_V1_NONE : position) ||
          shuffle_v1_index(&s, s.n) != SHUFFLE_V1_NONE)
        out[i] = ~index;
    }
    fwrite(out, sizeof *out, num, stdout);
    free(out);
  }
  return 0;
}
