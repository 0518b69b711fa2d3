/* Print a rank's batches of an epoch: ./rank_batches PLAN.json EPOCH RANK

   The file is what plan.to_json() returns, of ip.Plan(ip.Shuffle(n, seed), world_size=...,
   batch_size=...) with remainder "spread" or "drop". A plan has one text, so what is read here is
   compared letter by letter, and a plan that means anything else is refused. */
#include <indexplan/shuffle_v1.h>

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

/* How many of the numbers before `place` are less than `rank` modulo `ranks`. */
static uint64_t below(uint64_t place, uint64_t rank, uint64_t ranks) {
  return place / ranks * rank + (place % ranks < rank ? place % ranks : rank);
}

int main(int argc, char **argv) {
  char text[1024], remainder[7];
  uint64_t batch, n, seed, ranks;
  int end = 0;
  FILE *file = argc == 4 ? fopen(argv[1], "r") : NULL;
  if (!file) return fprintf(stderr, "usage: rank_batches PLAN.json EPOCH RANK\n"), 1;
  text[fread(text, 1, sizeof text - 1, file)] = 0;
  fclose(file);
  const int found = sscanf(text, PLAN, &batch, &n, &seed, remainder, &ranks, &end);
  if (found != 5 || !end || text[(size_t)end + strspn(text + end, "\n")] || !batch || !n || !ranks ||
      (strcmp(remainder, "drop") && strcmp(remainder, "spread")))
    return fprintf(stderr, "not a plan that this program reads\n"), 1;

  const uint64_t epoch = strtoull(argv[2], NULL, 10), rank = strtoull(argv[3], NULL, 10);
  if (epoch >> 32 || rank >= ranks) return fprintf(stderr, "no such epoch or rank\n"), 1;
  const shuffle_v1 order = shuffle_v1_make(n, seed, 0, (uint32_t)epoch);
  const uint64_t size = batch * ranks, is_whole = !strcmp(remainder, "drop");
  const uint64_t num_steps = is_whole ? n / size : (n - 1) / size + 1;
  const uint64_t length = is_whole ? num_steps * size : n;
  uint64_t *indices = malloc(batch * sizeof *indices);
  if (!indices) return 2;
  for (uint64_t step = 0; step < num_steps; step++) {
    const uint64_t start = split(length, num_steps, step);
    const uint64_t stop = split(length, num_steps, step + 1);
    const uint64_t first = start + below(stop, rank, ranks) - below(start, rank, ranks);
    const uint64_t last = start + below(stop, rank + 1, ranks) - below(start, rank + 1, ranks);
    shuffle_v1_fill(&order, first, last - first, indices);
    for (uint64_t i = 0; i < last - first; i++) printf("%s%" PRIu64, i ? " " : "", indices[i]);
    putchar('\n'); /* the line of a batch without a sample is empty */
  }
  free(indices);
  return 0;
}
