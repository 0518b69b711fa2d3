/* Print a rank's batches of an epoch: ./rank_batches PLAN.json EPOCH RANK

   The file is what plan.to_json() returns, of ip.Plan(ip.Shuffle(n, seed), world_size=...,
   batch_size=...) with remainder "spread" or "drop". A plan has one text, so what is read here is
   compared letter by letter, and a plan that means anything else is refused. */
#include <indexplan/shuffle_v1.h>

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NUMBER "%19" SCNu64 /* below 2**64 */
#define PLAN                                                                              \
  "{\"batch_size\":" NUMBER ",\"global_batch_size\":null,"                                \
  "\"order\":{\"algorithm\":\"shuffle-v1\",\"num_samples\":" NUMBER ",\"seed\":" NUMBER "}," \
  "\"partition\":\"partition-v1\",\"remainder\":\"%6[a-z]\",\"resumed\":null,"            \
  "\"sub_epochs\":1,\"world_size\":" NUMBER "}%n"

/* Where part i starts when m things are spread over k parts. */
static uint64_t split(uint64_t m, uint64_t k, uint64_t i) {
  return i * (m / k) + (i < m % k ? i : m % k);
}

/* Whether a text is a number below 2**64. strtoull alone takes "", "zero", "1e3" and "-1", too. */
static int is_number(const char *text, uint64_t *number) {
  errno = 0;
  *number = strtoull(text, NULL, 10);
  return *text && !text[strspn(text, "0123456789")] && !errno;
}

/* How many of the numbers before `place` are less than `rank` modulo `ranks`. */
static uint64_t below(uint64_t place, uint64_t rank, uint64_t ranks) {
  return place / ranks * rank + (place % ranks < rank ? place % ranks : rank);
}

int main(int argc, char **argv) {
  char text[1024], remainder[7];
  uint64_t batch, n, seed, ranks, epoch, rank;
  int end = 0;
  FILE *file = argc == 4 ? fopen(argv[1], "r") : NULL;
  if (!file) return fprintf(stderr, "usage: rank_batches PLAN.json EPOCH RANK\n"), 1;
  text[fread(text, 1, sizeof text - 1, file)] = 0;
  fclose(file);
  const int found = sscanf(text, PLAN, &batch, &n, &seed, remainder, &ranks, &end);
  if (found != 5 || !end || text[(size_t)end + strspn(text + end, "\n")] || !batch || !n ||
      n >> 63 || !ranks || batch > (UINT64_MAX >> 2) / ranks ||
      (strcmp(remainder, "drop") && strcmp(remainder, "spread")))
    return fprintf(stderr, "not a plan that this program reads\n"), 1;

  if (!is_number(argv[2], &epoch) || epoch >> 32)
    return fprintf(stderr, "EPOCH must be a number in [0, 2**32); got \"%s\"\n", argv[2]), 1;
  if (!is_number(argv[3], &rank) || rank >= ranks)
    return fprintf(stderr, "RANK must be a number in [0, %" PRIu64 "); got \"%s\"\n", ranks,
                   argv[3]), 1;
  const shuffle_v1 order = shuffle_v1_make(n, seed, 0, epoch);
  const uint64_t size = batch * ranks, is_whole = !strcmp(remainder, "drop");
  const uint64_t num_steps = is_whole ? n / size : (n - 1) / size + 1;
  const uint64_t length = is_whole ? num_steps * size : n;
  uint64_t indices[1024]; /* of a batch some at a time, as it may be larger than memory */
  for (uint64_t step = 0; step < num_steps; step++) {
    const uint64_t start = split(length, num_steps, step);
    const uint64_t stop = split(length, num_steps, step + 1);
    const uint64_t first = start + below(stop, rank, ranks) - below(start, rank, ranks);
    const uint64_t last = start + below(stop, rank + 1, ranks) - below(start, rank + 1, ranks);
    for (uint64_t at = first; at < last; at += 1024) {
      const size_t num = last - at < 1024 ? (size_t)(last - at) : 1024;
      shuffle_v1_fill(&order, at, num, indices);
      for (size_t i = 0; i < num; i++)
        printf("%s%" PRIu64, at + i > first ? " " : "", indices[i]);
    }
    putchar('\n'); /* the line of a batch without a sample is empty */
  }
  return 0;
}
